"""Temporary files in memory: tests wait for thousands of flushes to a disk, and not one of them proves anything."""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30


def keep_files_in_memory() -> None:
    """Do so where there is room and nobody has said otherwise.

    Workers, and the processes that tests start, get it with the environment.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(_MEMORY).free >= _ENOUGH:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def is_in_memory() -> bool:
    return tempfile.gettempdir() == str(_MEMORY)
