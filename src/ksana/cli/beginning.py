"""`ksana init`: two files to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from ksana.cli.asking import shown
from ksana.cli.output import Out
from ksana.domain.errors import AlreadyExists

_SETTINGS = """\
# Settings of `ksana serve`; `ksana config show` prints all of them with their sources.
server:
  port: 7100
storage:
  dir: ./data
scheduler:
  timezone: UTC
"""
_APP = '''\
"""Schedules in code: `python app.py` runs them."""

from ksana import Ksana

app = Ksana()


@app.every("30s")
def heartbeat() -> str:
    return "still here"


if __name__ == "__main__":
    app.serve()
'''
_FILES = {"ksana.yaml": _SETTINGS, "app.py": _APP}


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only print what would be written.")
@shown
def init(directory: Path, force: bool, is_dry: bool, out: Out) -> None:
    """Write ksana.yaml and app.py into DIRECTORY."""
    taken = [name for name in _FILES if (directory / name).exists()]
    if taken and not force and not is_dry:
        raise AlreadyExists(f"already there: {', '.join(taken)}; say --force to write over")
    for name, text in _FILES.items():
        path = directory / name
        if not is_dry:
            directory.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        if out.as_json:
            out.json({"path": str(path), "written": not is_dry})
        else:
            click.echo(str(path))
    out.say("next: `ksana serve`, or `python app.py`" if not is_dry else "nothing was written")
