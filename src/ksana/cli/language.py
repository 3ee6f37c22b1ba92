"""The headings of the command's tables in Chinese, and which language somebody wants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ksana.domain.words import Language

_HEADINGS: Final = {
    "id": "编号",
    "name": "名称",
    "kind": "类型",
    "schedule": "计划",
    "next": "下次触发",
    "last": "上次结果",
    "state": "状态",
    "job": "任务",
    "planned": "计划时间",
    "started": "开始",
    "ended": "结束",
    "delay": "延迟",
    "took": "耗时",
    "attempts": "尝试",
    "trigger": "触发方式",
    "error": "错误",
    "tags": "标签",
    "enabled": "启用",
    "queue": "队列",
    "due": "到期",
    "lag": "滞后",
    "running": "运行中",
    "dead": "死信",
    "node": "节点",
    "needs": "依赖",
    "decision": "决定",
    "reason": "原因",
    "count": "数量",
    "from": "从",
    "to": "到",
    "run": "运行",
    "at": "时间",
    "description": "说明",
    "target": "目标",
    "version": "版本",
    "retry": "重试",
    "timeout": "超时",
    "words": "含义",
    "action": "动作",
    "changes": "变更",
    "what": "内容",
    "left": "左",
    "right": "右",
    "status": "状态",
    "payload": "载荷",
    "items": "工作项",
    "queued": "排队",
    "type": "类别",
    "risk": "风险",
    "certainty": "确信度",
    "gates": "闸门",
    "held back": "受阻",
    "until": "租约至",
    "done": "完成",
    "failed": "失败",
    "operation": "操作",
    "concurrency": "并发",
    "key": "键",
}


def heading(title: str, language: Language) -> str:
    """A heading as its readers call it."""
    return _HEADINGS.get(title, title) if language == "zh" else title


def language_of(environ: Mapping[str, str] = os.environ) -> Language:
    """The language of the terminal's locale, as every other program takes it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environ.get(name):
            return "zh" if environ[name].lower().startswith("zh") else "en"
    return "en"
