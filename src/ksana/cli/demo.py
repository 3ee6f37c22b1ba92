"""`ksana demo`: see it work before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--port", type=int, help="Port to listen on (default 7100, or any if that is taken).")
@click.option("--keep", type=click.Path(path_type=Path), help="Directory to keep the data in (default: none is kept).")
@click.option("--open/--no-open", "opens", default=None, help="Open the console in a browser (default: on a terminal).")
def demo(port: int | None, keep: Path | None, opens: bool | None) -> None:
    """Start a server with samples of everything: timers, cron, callbacks, a chain, code and a queue.

    They call a target that runs beside it, so nothing leaves the machine.
    """
    import tempfile

    if keep is not None:
        _demo(keep, port, opens)
        return
    with tempfile.TemporaryDirectory(prefix="ksana-demo-") as directory:
        _demo(Path(directory), port, opens)


def _demo(directory: Path, port: int | None, opens: bool | None) -> None:
    from ksana.cli.options import settings_from, start_logging
    from ksana.cli.serve import run_node
    from ksana.demo.running import demo as run_demo
    from ksana.demo.running import free_port

    chosen = free_port() if port is None else free_port(0) if port == 0 else port
    settings = settings_from(None, store=f"sqlite:{directory / 'ksana.db'}", port=str(chosen), log_level="error")
    start_logging(settings)
    wants_browser = sys.stdout.isatty() if opens is None else opens

    def ready(url: str) -> None:
        _greet(url, directory)
        if wants_browser:
            import webbrowser

            webbrowser.open(url)

    run_node(lambda stop: run_demo(settings, stop, click.echo, ready))


def _greet(url: str, directory: Path) -> None:
    import ksana
    from ksana.demo.running import DEFAULT_PORT
    from ksana.demo.samples import samples

    # Whoever has another server where one is looked for must not try things out on that.
    here = "" if url.endswith(f":{DEFAULT_PORT}") else f" --url {url}"
    lines: list[tuple[str, Any]] = [(sample.body["name"], sample.shows) for sample in samples("")]
    lines += [("demo.tick", "a function with a decorator"), ("queue demo.mail", "items, and a dead letter to put back")]
    click.echo(f"ksana {ksana.__version__}   console {url}/console/   data {directory}", err=True)
    click.echo("no API key: only this machine can reach it. Stop it with Ctrl-C.", err=True)
    for name, shows in lines:
        click.echo(f"  {name:<18} {shows}", err=True)
    click.echo(
        f"\nnext: ksana jobs create hello --every 10s --http 'GET {url}/healthz'{here}"
        "\n      ksana explain '*/5 9-17 * * 1-5' --tz Asia/Shanghai"
        "\n      ksana init    (an app.py of your own)\n",
        err=True,
    )
