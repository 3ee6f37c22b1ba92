"""Measures in fresh processes, one thing after the other in every round: neither what an earlier measurement left in
memory nor the drift of a busy machine favours one side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from figures import Figure, Measured, Missing, Unit

HERE = Path(__file__).parent
ROUNDS = 3
_LONGEST = 600.0

Measurement = Callable[[], float]


class FailedError(Exception):
    """A measurement did not come to a figure; the text says why."""


def measure(*command: object, key: str = "rate", python: Path = Path(sys.executable)) -> float:
    """Run a script of this folder and take one number from what it tells."""
    return script(*command, python=python)[key]


def script(*command: object, python: Path = Path(sys.executable)) -> dict[str, float]:
    """Run a script of this folder and give all it tells."""
    return told([str(python), str(HERE / str(command[0])), *map(str, command[1:])])


def told(command: list[str], env: Mapping[str, str] | None = None) -> dict[str, float]:
    """Run a program and read the JSON object it prints last."""
    child = subprocess.Popen(
        command,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, errors = child.communicate(timeout=_LONGEST)
    except subprocess.TimeoutExpired as error:
        raise FailedError(f"no answer in {_LONGEST:.0f} s") from error
    finally:
        _end(child)
    if child.returncode or not out.strip():
        raise FailedError(_last_line(errors) or f"it ended with {child.returncode} and said nothing")
    found: dict[str, float] = json.loads(out.strip().splitlines()[-1])
    return found


def _end(child: subprocess.Popen[str]) -> None:
    """A measurement that was cut off takes the processes it started with it."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else ""


def in_rounds(rounds: int, unit: Unit, measurements: Mapping[str, Measurement]) -> dict[str, Measured]:
    """Each measurement once a round. One that fails is not tried again, and its row says why."""
    values: dict[str, list[float]] = {name: [] for name in measurements}
    failed: dict[str, Missing] = {}
    for _ in range(rounds):
        for name, take in measurements.items():
            if name in failed:
                continue
            try:
                value = take()
            except FailedError as error:
                failed[name] = Missing(str(error))
                say(f"  {name}: {error}")
            else:
                values[name].append(value)
                say(f"  {name}: {unit.show(value)}")
    return {name: failed.get(name) or Figure(tuple(values[name]), unit) for name in measurements}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
