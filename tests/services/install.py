"""The last resort on a machine that is ours to change: install the missing servers from Debian's packages."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

FORBID = "KSANA_TEST_INSTALL=0"


def why_not_installing() -> str | None:
    """Give the reason not to install anything here, or None."""
    if os.environ.get("KSANA_TEST_INSTALL") == "0":
        return f"{FORBID} forbids installing it"
    if not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
        return "this is no Debian on which the tests could install it"
    if os.geteuid() != 0:
        return "installing it takes root"
    return None


def install(packages: list[str], say: Callable[[str], None]) -> str | None:
    """Install with apt-get; give the reason of a failure, or None."""
    say(f"INSTALLING {' '.join(packages)} with apt-get, as root ({FORBID} forbids it)")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            return f"`{' '.join(command[:2])}` failed: {lines[-1] if lines else done.returncode}"
    return None
