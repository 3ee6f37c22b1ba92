"""Targets whose work is done by others: a chain hands it over to its steps, steps of type job and task to the run of a
job, and those of type queue to a worker. The engine does that itself, so here is only what makes them acceptable."""

from __future__ import annotations

from typing import Any

from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.graph import read_graph
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.domain.validation import ATTEMPTS, QUEUE_LENGTH
from ksana.targets.checks import not_json, refuse, unknown_fields
from ksana.targets.services import TargetServices


class _HandedOver:
    """What they share: nobody ever asks them for an attempt."""

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return False

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        return Outcome(Verdict.FAIL, error="this is done by other runs, and the engine of this node did not make them")

    async def close(self) -> None:
        return None


class ChainTarget(_HandedOver):
    """A graph of steps. The config is the dag as somebody wrote it, and stays so."""

    kind = "chain"

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        try:
            read_graph(config)
        except InvalidArgument as error:
            # What is wrong with the dag as a whole is said just as it is.
            raise InvalidArgument(
                Problem(f"target.{field}" if field else "", message) for field, message in error.problems
            ) from None
        refuse([found for name, value in config.items() for found in not_json(name, value)])
        return config


class JobStep(_HandedOver):
    """One run of the `job` with this id or name, which is given the `input`."""

    is_step_only = True
    """As a job of its own it would be that job by another name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        names = ("job", "task")
        problems = unknown_fields(self.kind, config, (*names, "input"))
        given = {name: config[name] for name in names if config.get(name) is not None}
        if len(given) != 1:
            problems.append(Problem(self.kind, f"say which {self.kind}, by its id or its name, and once"))
        for name, wanted in given.items():
            if isinstance(wanted, bool) or not isinstance(wanted, int | str) or not str(wanted).strip():
                problems.append(Problem(name, "must be the id or the name of a job"))
        refuse(problems + not_json("input", config.get("input")))
        return config


class QueueStep(_HandedOver):
    """One item with this `payload` for whoever pulls from the `queue`; it may fail `max_attempts` times."""

    kind = "queue"
    is_step_only = True
    """An item of a queue is enqueued, not scheduled: a schedule that enqueues is a chain of this one step."""

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        problems = unknown_fields(self.kind, config, ("queue", "payload", "max_attempts"))
        queue, attempts = config.get("queue"), config.get("max_attempts")
        if not isinstance(queue, str) or not queue.strip() or not queue.isascii() or not queue.isprintable():
            problems.append(Problem("queue", "name the queue, in printable ASCII"))
        elif len(queue) >= QUEUE_LENGTH:
            problems.append(Problem("queue", f"must be shorter than {QUEUE_LENGTH} characters"))
        if attempts is not None and (type(attempts) is not int or not 1 <= attempts <= ATTEMPTS):
            problems.append(Problem("max_attempts", f"must be a whole number from 1 to {ATTEMPTS}"))
        refuse(problems + not_json("payload", config.get("payload")))
        return config


def build_chain(services: TargetServices) -> ChainTarget:
    return ChainTarget()


def build_job(services: TargetServices) -> JobStep:
    return JobStep("job")


def build_task(services: TargetServices) -> JobStep:
    return JobStep("task")


def build_queue(services: TargetServices) -> QueueStep:
    return QueueStep()
