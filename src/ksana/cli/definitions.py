"""Jobs written down in files: YAML or JSON in the shape of POST /api/v2/jobs, and the files of older schedulers.

A timer of a `jobs.json`, a CronJob task and a chain's DAG are read by the very code that reads them as requests, so a
file means what the request would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ksana.cli.values import file_text
from ksana.domain.errors import InvalidArgument, NotFound, Problem
from ksana.domain.jobs import Job, JobSpec

SUFFIXES = (".yaml", ".yml", ".json")
# Of what the server shows of a job, what is its definition.
_DEFINING = (
    *("name", "description", "tags", "enabled", "target", "schedule", "queue", "priority"),
    *("retry", "overlap", "misfire", "timeouts", "on_uncertain"),
)


class Definition(msgspec.Struct, frozen=True):
    """A job as a file has it, in the words of POST /api/v2/jobs."""

    name: str
    body: dict[str, Any]
    source: str


def read_definitions(paths: tuple[str, ...]) -> list[Definition]:
    """Every job of these files and directories; InvalidArgument names each file that is wrong."""
    found: list[Definition] = []
    problems: list[Problem] = []
    for path in paths:
        for file in _files(path):
            try:
                found += read_text(file_text(file, "-f"), file)
            except InvalidArgument as error:
                problems += [
                    Problem(f"{file}: {problem.field}" if problem.field else file, problem.message)
                    for problem in error.problems
                ]
    problems += _taken_twice(found)
    if problems:
        raise InvalidArgument(problems)
    return found


def read_text(text: str, source: str) -> list[Definition]:
    """The jobs of one file: one document or several, one job or a list."""
    return [found for tree in trees_of(text) for found in _read(tree, source)]


def definition_of(view: dict[str, Any]) -> dict[str, Any]:
    """What of a job, as the server shows it, is its definition; what is empty is left out."""
    body = {name: view[name] for name in _DEFINING if view.get(name) not in (None, "", [])}
    if body.get("enabled") is True:
        del body["enabled"]
    if "schedule" in body:
        schedule = {name: value for name, value in body["schedule"].items() if value is not None}
        schedule.pop("origin_at", None)
        if schedule.get("jitter") == "0s":
            del schedule["jitter"]
        body["schedule"] = schedule
    return body


def _files(path: str) -> Iterator[str]:
    place = Path(path)
    if path == "-" or not place.is_dir():
        if path != "-" and not place.exists():
            raise NotFound(f"-f: there is no file or directory {path}")
        yield path
        return
    yield from sorted(str(file) for file in place.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def trees_of(text: str) -> list[Any]:
    """The documents of a file as plain values."""
    import json

    import yaml

    class Loader(yaml.SafeLoader):
        """Instants stay as they are written: their zone is for the server to judge."""

        yaml_implicit_resolvers = {  # noqa: RUF012
            letter: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
            for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        # Nothing but plain values is ever constructed.
        return [tree for tree in yaml.load_all(text, Loader) if tree is not None]
    except yaml.YAMLError as error:
        raise InvalidArgument.of("", f"is neither YAML nor JSON: {' '.join(str(error).split())}") from None


def _read(tree: Any, source: str) -> Iterator[Definition]:
    if isinstance(tree, list):
        for one in tree:
            yield from _read(one, source)
    elif isinstance(tree, dict) and isinstance(tree.get("jobs"), list):
        yield from _named_apart([found for one in tree["jobs"] for found in _read(one, source)], tree["jobs"])
    elif isinstance(tree, dict):
        yield _one(tree, source)
    else:
        raise InvalidArgument.of("", "a job is a mapping with a name and a target")


def _one(tree: dict[str, Any], source: str) -> Definition:
    reader = _reader(tree)
    if reader is None:
        raise InvalidArgument.of(
            "", "is no job: say name and target (/api/v2), http (a timer), cron_expr (a task) or nodes (a chain)"
        )
    body = reader(tree, source)
    return Definition(body["name"], body, source)


def _reader(tree: dict[str, Any]) -> Callable[[dict[str, Any], str], dict[str, Any]] | None:
    if "target" in tree:
        return _v2
    if "dagJson" in tree or "nodes" in tree:
        return _chain
    if "cron_expr" in tree or "CronExpr" in tree:
        return _task
    if "http" in tree or tree.get("type") == "http":
        return _timer
    return None


def _v2(tree: dict[str, Any], source: str) -> dict[str, Any]:
    from ksana.api.kit.conversion import convert
    from ksana.api.v2.job_shapes import JobInput

    convert(tree, JobInput)
    return {name: value for name, value in tree.items() if value is not None}


def _timer(tree: dict[str, Any], source: str) -> dict[str, Any]:
    from ksana.api.jobs.reading import read_new_job
    from ksana.api.jobs.shapes import JobShape
    from ksana.api.kit.conversion import convert
    from ksana.api.services import JobDefaults

    spec = read_new_job(convert(tree, JobShape), JobDefaults(), datetime.now(UTC), _unchecked)
    return _body(spec)


def _task(tree: dict[str, Any], source: str) -> dict[str, Any]:
    from ksana.api.kit.conversion import convert
    from ksana.api.services import JobDefaults
    from ksana.api.tasks.spellings import snake_task
    from ksana.api.tasks.task_reading import read_new_task
    from ksana.api.tasks.task_shapes import TaskInput

    return _body(read_new_task(convert(snake_task(tree), TaskInput), JobDefaults(), _unchecked))


def _chain(tree: dict[str, Any], source: str) -> dict[str, Any]:
    from ksana.api.chains.chain_reading import read_new_chain
    from ksana.api.chains.chain_shapes import ChainInput
    from ksana.api.kit.conversion import convert
    from ksana.api.services import JobDefaults
    from ksana.domain.graph import read_graph

    if "dagJson" not in tree:
        # The dag alone: its file is its name.
        tree = {"name": tree.get("name") or Path(source).stem, "dagJson": tree}
    spec = read_new_chain(convert(tree, ChainInput), JobDefaults(), datetime.now(UTC))
    read_graph(spec.target.config)
    return _body(spec)


def _unchecked(spec: JobSpec) -> None:
    """What only a server can judge is judged there."""


def _body(spec: JobSpec) -> dict[str, Any]:
    """A job of another surface in the words of /api/v2."""
    from ksana.api.v2.job_shapes import show_job

    now = datetime.now(UTC)
    fields = {name: getattr(spec, name) for name in JobSpec.__struct_fields__}
    job = Job(**fields, id=0, surface="v2", created_at=now, updated_at=now)
    return definition_of(msgspec.to_builtins(show_job(job)))


def _named_apart(found: list[Definition], entries: list[Any]) -> Iterator[Definition]:
    """Timers may share a name, for their id tells them apart; here it is the name that does."""
    names = [one.name for one in found]
    for one, entry in zip(found, entries, strict=False):
        if names.count(one.name) > 1 and isinstance(entry, dict) and entry.get("id"):
            name = f"{one.name} ({entry['id']})"
            yield Definition(name, {**one.body, "name": name}, one.source)
        else:
            yield one
    yield from found[len(entries) :]


def _taken_twice(found: list[Definition]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for one in found:
        if one.name in first:
            yield Problem(one.source, f"the name {one.name!r} is taken by {first[one.name]}; names tell jobs apart")
        first.setdefault(one.name, one.source)
