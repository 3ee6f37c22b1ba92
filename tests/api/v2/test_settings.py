"""The settings of the program, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from ksana.app import Program
from ksana.config import load_settings
from tests.api.kit.client import Client

SECRET = "ksk_0123456789abcdef_" + "5" * 64


async def test_every_setting_is_shown_with_its_source_and_no_secret(tmp_path: Path) -> None:
    environ = {
        "KSANA_DATA_DIR": str(tmp_path),
        "KSANA_API_KEYS": SECRET,
        "KSANA_SIGNING_SECRET": "do-not-tell-anyone",
        "LOG_LEVEL": "debug",
    }
    settings = load_settings({"port": 7177}, environ, None, tmp_path, tmp_path / "none")
    program = Program(settings)
    await program.store.open()
    try:
        client = Client(program.web(program.engine(7177)), {"x-api-key": SECRET})
        answer = await client.get("/api/v2/settings")
        system = await client.get("/api/v2/system")
    finally:
        for target in program.targets.values():
            await target.close()
        await program.store.close()
    assert answer.status == 200
    items: dict[str, Any] = {item["name"]: item for item in answer.json()["items"]}
    assert (items["server.port"]["value"], items["server.port"]["source"]) == ("7177", "flag --port")
    assert items["logging.level"]["source"] == "environment LOG_LEVEL"
    assert items["logging.level"]["env"] == ["KSANA_LOG_LEVEL", "LOG_LEVEL"]
    assert (items["server.host"]["value"], items["server.host"]["source"]) == ("127.0.0.1", "default")
    assert items["server.host"]["description"].startswith("Address to listen on.")
    assert SECRET[-64:] not in answer.body.decode()
    assert "do-not-tell-anyone" not in answer.body.decode()
    seen = system.json()
    assert (seen["store"]["kind"], seen["store"]["ok"], seen["auth"]) == ("sqlite", True, True)
    assert seen["store"]["size_bytes"] >= (tmp_path / "ksana.db").stat().st_size > 0
    assert seen["retention"]["keep"] == f"{timedelta(days=30) // timedelta(hours=1)}h"
