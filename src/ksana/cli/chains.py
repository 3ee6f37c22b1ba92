"""`ksana chains`: graphs of nodes, their runs, and what a person may do to a node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import asked, confirmed, connected, shown
from ksana.cli.finding import find_job, job_names, run_id
from ksana.cli.groups import Nouns
from ksana.cli.jobs import YES
from ksana.cli.looks import first_line, job_columns, json_text, run_columns, schedule_text, state_cell
from ksana.cli.output import Column, Out
from ksana.cli.values import file_text, json_of
from ksana.cli.waiting import WAIT, ended
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.cli.drawing import Box
    from ksana.client import Client
    from ksana.client.results import Step
    from ksana.domain.graph import Graph

_CHAIN = "chain"


@click.group(cls=Nouns)
def chains() -> None:
    """Look at chains, start and stop them, act on their nodes."""


@chains.command("list")
@click.option("--name", default="", help="Any part of the name.")
@click.option("--tag", help="Chains with this tag.")
@asked
def list_chains(name: str, tag: str | None, server: Client, out: Out) -> None:
    """List chains."""
    out.table(job_columns(out), server.jobs.list(kind=_CHAIN, name=name, tag=tag), lambda job: job.id)


@chains.command()
@click.argument("chain", shell_complete=job_names)
@click.option("--run", "run_text", help="How the nodes stand in this run (default: the last).")
@asked
def show(chain: str, run_text: str | None, server: Client, out: Out) -> None:
    """Show a chain and how its nodes stand."""
    import msgspec

    job = find_job(server, chain, _CHAIN)
    run = server.runs.get(run_id(run_text)) if run_text else job.last_run
    steps = [] if run is None else server.runs.steps(run)
    if out.as_json:
        out.json({**msgspec.to_builtins(job), "steps": msgspec.to_builtins(steps)})
        return
    out.fields(
        [
            ("id", str(job.id)),
            ("name", job.name),
            ("description", job.description),
            ("schedule", schedule_text(job.schedule, out)),
            ("enabled", "yes" if job.enabled else "no"),
            ("next", out.instant(job.next_fire_at)),
            ("run", "" if run is None else str(run.id)),
            ("state", "" if run is None else state_cell(run.state, out)),
            ("error", "" if run is None else run.error),
        ],
        job,
        job.id,
    )
    if not out.is_quiet:
        out.table(_step_columns(out), steps, lambda step: step.id)


def _step_columns(out: Out) -> list[Column[Step]]:
    return [
        Column("node", lambda step: step.id),
        Column("kind", lambda step: step.kind),
        Column("state", lambda step: state_cell(step.state, out)),
        Column("attempts", lambda step: str(step.attempt)),
        Column("needs", lambda step: ", ".join(step.needs)),
        Column("error", lambda step: first_line(step.error), is_text=True),
        Column("artifact", lambda step: json_text(step.artifact), is_text=True),
    ]


@chains.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@shown
def validate(files: tuple[str, ...], out: Out) -> None:
    """Check chains written down in files, without a server: a DAG, or a job with the target chain."""
    columns = [Column[Any]("name", lambda row: row["name"]), Column[Any]("count", lambda row: f"{row['nodes']} nodes")]
    for file in files:
        for name, graph in _graphs_of(file_text(file, "FILE"), file):
            out.row(columns, {"file": file, "name": name, "nodes": len(graph.steps)}, lambda row: row["name"])


def _graphs_of(text: str, source: str) -> list[tuple[str, Graph]]:
    from ksana.cli.definitions import read_text
    from ksana.domain.graph import read_graph

    found = [one for one in read_text(text, source) if one.body["target"]["kind"] == _CHAIN]
    if not found:
        raise InvalidArgument.of(source, "has no chain: an object with nodes, or a job with the target chain")
    return [(one.name, read_graph(one.body["target"]["config"])) for one in found]


@chains.command()
@click.argument("chain", metavar="CHAIN|FILE", shell_complete=job_names)
@click.option("--run", "run_text", help="With the states of this run.")
@click.option(
    "--as", "form", type=click.Choice(["boxes", "list", "mermaid", "dot"]), help="How (default: boxes where they fit)."
)
@click.option("--url", help="The server (KSANA_URL, else http://127.0.0.1:7100).")
@click.option("--key", "--token", "key", help="The API key (KSANA_KEY).")
@shown
def draw(chain: str, run_text: str | None, form: str | None, url: str | None, key: str | None, out: Out) -> None:
    """Draw a chain, of the server or of a file: as boxes if it is small, else layer by layer, or for a program that
    draws."""
    if chain == "-" or Path(chain).is_file():
        boxes: list[Box] = []
        for _, graph in _graphs_of(file_text(chain, "FILE"), chain):
            boxes += _boxes(graph, len(boxes))
    else:
        with connected(url, key) as server:
            boxes = _boxes_of(server, chain, run_text, out)
    if out.as_json:
        out.json([{"id": box.id, "kind": box.kind, "needs": [boxes[need].id for need in box.needs]} for box in boxes])
        return
    click.echo("\n".join([box.id for box in boxes] if out.is_quiet else _drawn(boxes, form)))


def _drawn(boxes: list[Box], form: str | None) -> list[str]:
    from shutil import get_terminal_size

    from ksana.cli import drawing
    from ksana.cli.boxes import as_boxes

    match form:
        case "list":
            return drawing.as_list(boxes)
        case "mermaid":
            return drawing.as_mermaid(boxes)
        case "dot":
            return drawing.as_dot(boxes)
        case "boxes":
            picture = as_boxes(boxes)
            if picture is None:
                raise InvalidArgument.of("--as", "too large for boxes, or lines would cross; say list, mermaid or dot")
            return picture
        case _:
            return as_boxes(boxes, get_terminal_size().columns) or drawing.as_list(boxes)


def _boxes(graph: Graph, before: int = 0) -> list[Box]:
    """The nodes of a graph, as they are counted after so many others."""
    from ksana.cli.drawing import Box

    return [Box(step.id, step.kind, tuple(need + before for need in step.needs)) for step in graph.steps]


def _boxes_of(server: Client, chain: str, run_text: str | None, out: Out) -> list[Box]:
    from ksana.cli.drawing import Box
    from ksana.domain.graph import read_graph

    job = find_job(server, chain, _CHAIN)
    if run_text is None:
        return _boxes(read_graph(job.target.config, is_accepted=True))
    steps = server.runs.steps(run_id(run_text))
    places = {step.id: place for place, step in enumerate(steps)}
    return [Box(step.id, step.kind, tuple(places[need] for need in step.needs), _mark(step, out)) for step in steps]


def _mark(step: Step, out: Out) -> str:
    word = state_cell(step.state, out).text
    return word.split()[0] if out.is_terminal else f"[{word}]"


@chains.command()
@click.argument("chain", shell_complete=job_names)
@click.option("--params", "params_text", help="JSON with parameters of the chain; @FILE reads a file, - stdin.")
@WAIT
@asked
def start(chain: str, params_text: str | None, wait: str | None, server: Client, out: Out) -> None:
    """Start a chain. With --wait, exit with 0 only if it succeeds."""
    run = server.jobs.trigger(find_job(server, chain, _CHAIN), input=json_of(params_text, "--params"))
    if wait is None:
        out.row(run_columns(out), run, lambda one: one.id)
    else:
        ended(server, out, run, wait)


@chains.command()
@click.argument("run", metavar="RUN")
@YES
@WAIT
@asked
def stop(run: str, is_yes: bool, wait: str | None, server: Client, out: Out) -> None:
    """Stop a run of a chain: what is under way is ended, nothing more begins."""
    confirmed(out, is_yes, f"Stop run {run}?")
    stopped = server.runs.cancel(run_id(run))
    if wait is not None:
        stopped = server.runs.wait(stopped, wait)
    out.row(run_columns(out), stopped, lambda one: one.id)


@chains.command("retry-node")
@click.argument("run", metavar="RUN")
@click.argument("node", metavar="NODE")
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@asked
def retry_node(run: str, node: str, reason: str, server: Client, out: Out) -> None:
    """Try a node again that failed or was stopped. The chain goes on from there."""
    out.row(run_columns(out), server.runs.retry_step(run_id(run), node, reason=reason), lambda one: one.id)


@chains.command("complete-node")
@click.argument("run", metavar="RUN")
@click.argument("node", metavar="NODE")
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@click.option("--artifact", "artifact_text", help="JSON handed on in place of the node's own; @FILE reads a file.")
@asked
def complete_node(run: str, node: str, reason: str, artifact_text: str | None, server: Client, out: Out) -> None:
    """Take a node as done. The chain goes on from there."""
    given = {} if artifact_text is None else {"artifact": json_of(artifact_text, "--artifact")}
    done = server.runs.complete_step(run_id(run), node, reason=reason, **given)
    out.row(run_columns(out), done, lambda one: one.id)
