"""Runs one private server until the tests are gone, then stops it and removes its directory.

The tests hold the other end of this program's standard input. However they end, killed included, that end
closes, so no server and no data outlive them. Called as: keeper.py DIRECTORY USER STOP_SIGNAL COMMAND…
USER may be empty.
"""

import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path


def keep(directory: Path, user: str, stop_signal: int, command: list[str]) -> int:
    # Ctrl-C reaches the whole terminal; only the end of the tests ends the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (directory / "server.log").open("ab") as log:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=directory,
            user=user or None,
            group=_group_of(user) if user else None,
            extra_groups=[] if user else None,
            start_new_session=True,
        )

    def end_with_the_tests() -> None:
        sys.stdin.buffer.read()
        server.send_signal(stop_signal)

    threading.Thread(target=end_with_the_tests, daemon=True).start()
    code = server.wait()
    shutil.rmtree(directory, ignore_errors=True)
    return code


def _group_of(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
