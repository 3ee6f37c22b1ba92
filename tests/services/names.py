"""Names of what a test run puts on a shared server, and the rule by which a later run may sweep it away.

A name tells the host, the second and the process of the run that made it, so that two runs on one server
never touch each other's databases.
"""

import hashlib
import os
import re
import socket
from datetime import UTC, datetime, timedelta

import msgspec

PREFIX = "ksana_test_"

# A run on another machine cannot be asked whether it is alive; no honest run takes this long.
ABANDONED_AFTER = timedelta(days=1)

_NAME = re.compile(rf"{PREFIX}(?P<host>[0-9a-f]{{6}})_(?P<second>[0-9a-f]+)_(?P<process>[0-9a-f]+)(?:_|$)")


def _this_host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]


class RunName(msgspec.Struct, frozen=True):
    """Which test run something belongs to."""

    host: str
    started_at: datetime
    process: int

    @classmethod
    def of_this_process(cls, now: datetime) -> "RunName":
        return cls(_this_host(), now.replace(microsecond=0), os.getpid())

    @classmethod
    def found_in(cls, name: str) -> "RunName | None":
        """Read the run back from the name of a database or of a Redis key."""
        if (match := _NAME.search(name)) is None:
            return None
        started_at = datetime.fromtimestamp(int(match["second"], 16), UTC)
        return cls(match["host"], started_at, int(match["process"], 16))

    def __str__(self) -> str:
        return f"{PREFIX}{self.host}_{int(self.started_at.timestamp()):x}_{self.process:x}"

    def is_abandoned(self, now: datetime) -> bool:
        """Say whether nobody can still be using what carries this name."""
        if now - self.started_at > ABANDONED_AFTER:
            return True
        return self.host == _this_host() and not _is_alive(self.process)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
