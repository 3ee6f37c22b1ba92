"""The scripts by name. Each is put together from the parts it builds on, which are kept apart for the reader alone."""

from __future__ import annotations

from hashlib import sha1
from importlib.resources import files

import msgspec

from ksana.domain.items import KIND as ITEM
from ksana.stores.redis.codes import STATES

_FOLDER = files("ksana.stores.redis") / "lua"
_RUNS = ("base", "runs", "moves")
_JOBS = (*_RUNS, "jobs")


class Script(msgspec.Struct, frozen=True):
    """A script and the digest by which Redis knows it."""

    name: str
    text: str
    digest: str


def _script(name: str, *parts: str) -> Script:
    # The letters are said once, in codes.py, and what an item is in the domain.
    letters = ", ".join(f"{letter} = '{state.value}'" for state, letter in STATES.items())
    texts = [f"local STATES, ITEM = {{{letters}}}, '{ITEM}'"]
    texts += [(_FOLDER / f"{part}.lua").read_text("utf-8") for part in (*parts, name)]
    text = "\n".join(texts)
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


TURN = _script("turn", *_RUNS, "alerts", "families", "ends", "claiming")
HEAR = _script("hear", *_RUNS, "alerts", "ledger", "families")
LOOK = _script("look", *_RUNS, "families")
FAMILY = _script("family", *_RUNS)
KEEP_CHECKPOINT = _script("keep_checkpoint", *_RUNS)
GET_KEPT = _script("get_kept", "base")
ADD_ATTEMPTS = _script("add_attempts", *_RUNS)
ADMIT_WAITING = _script("admit_waiting", *_RUNS)
LAPSED = _script("lapsed", *_RUNS)
GET_RUNS = _script("get_runs", *_RUNS)
RUN_BY_TOKEN = _script("run_by_token", *_RUNS)
PAGE_RUNS = _script("page_runs", *_RUNS, "pages")
LAST_RUNS = _script("last_runs", *_RUNS)
NEXT_DUE = _script("next_due", *_RUNS)

ADD_JOBS = _script("add_jobs", *_JOBS)
CHANGE_JOBS = _script("change_jobs", *_JOBS, "families")
DUE_JOBS = _script("due_jobs", *_RUNS, "judging")
JOBS_DUE_AT = _script("jobs_due_at", *_RUNS, "judging")
JUDGED_JOBS = _script("judged_jobs", *_RUNS, "judging")
BURSTS = _script("bursts", "base")
FIRE = _script("fire", *_JOBS)
ENQUEUE = _script("enqueue", *_JOBS, "items")
PULL = _script("pull", *_RUNS, "due_items", "handing")
LOOK_AT_ITEMS = _script("look_at_items", *_RUNS, "due_items")
HAND_OUT = _script("hand_out", *_RUNS, "handing", "governed")
SETTLE = _script("settle", *_JOBS, "alerts", "families", "items", "governed")
SET_QUEUE = _script("set_queue", "base", "governed")
ADD_AUDIT = _script("add_audit", "base", "governed")
LOOK_AT_JOB = _script("look_at_job", *_RUNS)
ADD_RUN = _script("add_run", *_JOBS)
PAGE_JOBS = _script("page_jobs", "base", "pages")
LIST_IDS = _script("list_ids", "base", "pages")
NEXT_FIRE = _script("next_fire", "base")
COUNTS = _script("counts", "base")

LAST_ATTEMPTS = _script("last_attempts", "base")
FIRE_LOG = _script("fire_log", "base")
BEAT = _script("beat", "base")
TELL_NODE = _script("tell_node", "base")
PRUNE_RUNS = _script("prune_runs", *_RUNS)
PRUNE_REST = _script("prune_rest", *_RUNS, "alerts", "governed")
ROLL_UP = _script("roll_up", *_RUNS, "minutes")
GET_MINUTES = _script("get_minutes", *_RUNS, "minutes")

LEAVE = _script("leave", "base")
REPLACE_KEY = _script("replace_key", "base")
RESTORE = _script("restore", *_JOBS, "alerts", "ledger", "governed")
TAKE_ON = _script("take_on", "base")
EXPORT = _script("export", "base")
EXPORT_ATTEMPTS = _script("export_attempts", *_RUNS, "pages")

LEASE_ALERTS = _script("lease_alerts", *_RUNS, "alerts")
SETTLE_ALERTS = _script("settle_alerts", *_RUNS, "alerts")
GIVE_UP_ALERTS = _script("give_up_alerts", *_RUNS, "alerts")
FIND_ALERTS = _script("find_alerts", *_RUNS, "alerts")
