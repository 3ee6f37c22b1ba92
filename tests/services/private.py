"""Starts a throw-away server for this run, as an unprivileged account when the tests run as root."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.services.memory import is_in_memory
from tests.services.service import AdmissionError, Recipe, Service

ROOT = Path(__file__).parents[2] / ".test-services"
START_SECONDS = 60
_POLL_SECONDS = 0.05

Admit = Callable[[str], None]


class PrivateServer:
    """A server of ours; it ends with `stop`, or with this process."""

    def __init__(self, url: str, keeper: subprocess.Popen[bytes]) -> None:
        self.url = url
        self._keeper = keeper

    def stop(self) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(timeout=30)


def start_private(service: Service, run: str, admit: Admit) -> PrivateServer | None:
    """Bring up a server and wait until it admits us; None when its programs are not installed."""
    if service.recipe(Path(), 0) is None:
        return None
    # Between choosing a free port and the server's own bind somebody else may take it.
    for last_try in (False, False, True):
        directory = _new_directory(f"{run}_{service.store}")
        recipe = service.recipe(directory, _free_port())
        assert recipe is not None
        try:
            return _start(recipe, directory, admit)
        except AdmissionError:
            shutil.rmtree(directory, ignore_errors=True)
            if last_try:
                raise
    return None


def _start(recipe: Recipe, directory: Path, admit: Admit) -> PrivateServer:
    user = _unprivileged(recipe.user)
    if user is not None:
        os.chown(directory, user.pw_uid, user.pw_gid)
    for command in recipe.prepare:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            user=user and user.pw_uid,
            group=user and user.pw_gid,
            extra_groups=[] if user else None,
            check=False,
        )
        if done.returncode != 0:
            raise AdmissionError(f"{command[0]} failed: {_closing_words(done.stdout)}")
    keeper = subprocess.Popen(
        [
            sys.executable,
            "-I",
            str(Path(__file__).with_name("keeper.py")),
            str(directory),
            user.pw_name if user else "",
            str(int(recipe.stop_signal)),
            *recipe.serve,
        ],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    server = PrivateServer(recipe.url, keeper)
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            admit(recipe.url)
        except AdmissionError as refusal:
            log = directory / "server.log"
            words = _closing_words(log.read_bytes()) if log.exists() else "it left no log"
            if keeper.poll() is not None or time.monotonic() > deadline:
                server.stop()
                raise AdmissionError(f"{recipe.serve[0]} did not start: {words}") from refusal
            _wait_for_the_end_of(keeper, _POLL_SECONDS)
        else:
            return server


def _wait_for_the_end_of(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return


def _unprivileged(preferred: str) -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in (preferred, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _new_directory(name: str) -> Path:
    """Make a directory that another account can reach: a checkout under /root is closed to it."""
    if is_in_memory():
        return Path(tempfile.mkdtemp(prefix=f"{name}_"))
    ROOT.mkdir(exist_ok=True)
    is_open = os.geteuid() != 0 or all(part.stat().st_mode & 0o001 for part in (ROOT, *ROOT.parents))
    return Path(tempfile.mkdtemp(prefix=f"{name}_", dir=ROOT if is_open else None))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _closing_words(output: bytes) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-3:])
