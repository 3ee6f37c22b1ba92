"""Steps of a chain's run: list them, try one again, call one done."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ksana.api.kit import Call, Input, Route, Scope, Timestamp, encode, timestamp
from ksana.api.v2.run_shapes import RunView
from ksana.api.v2.runs import shown_run
from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.graph import When
from ksana.domain.states import Reason, State
from ksana.engine.chain_verbs import StepStanding


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a chain's run. There is no `run_id` until the chain has begun; `artifact` is what the step hands on,
    `checkpoint` what its last attempt left to the next."""

    id: str
    kind: str
    needs: list[str]
    when: When
    run_id: int | None
    state: State
    reason: Reason | None
    attempt: int
    error: str
    artifact: Any
    checkpoint: Any
    started_at: Timestamp | None
    ended_at: Timestamp | None


class StepAction(Input, frozen=True):
    """Why somebody acts by hand, which becomes the step's error, and an artifact in place of the step's own."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    artifact: Any = msgspec.UNSET


async def list_steps(call: Call[None, None]) -> list[StepView]:
    """Every step of a chain's run, in the order of the definition, from the first instant on."""
    engine = call.services.engine
    run = await engine.runs.get(call.number("id"))
    standings = await engine.chains.steps(run)
    return [_show(standing, standings) for standing in standings]


async def retry(call: Call[StepAction, None]) -> RunView:
    """Try a step again that failed or was stopped. The chain goes on from there, even if it was over."""
    return await _acted(call, call.services.engine.chains.retry_step)


async def complete(call: Call[StepAction, None]) -> RunView:
    """Take a step as done that runs, failed or was stopped. The chain goes on from there."""
    return await _acted(call, call.services.engine.chains.complete_step)


async def _acted(call: Call[StepAction, None], act: Any) -> RunView:
    body = call.body
    artifact = None if body.artifact is msgspec.UNSET else encode(body.artifact)
    step = await act(call.number("id"), call.text("step"), reason=body.reason, artifact=artifact)
    return await shown_run(call.services, step)


def _show(standing: StepStanding, all_of_them: list[StepStanding]) -> StepView:
    step, run = standing.step, standing.run
    return StepView(
        id=step.id,
        kind=step.kind,
        needs=[all_of_them[need].step.id for need in step.needs],
        when=step.when,
        run_id=None if run is None else run.id,
        state=State.WAITING if run is None else run.state,
        reason=Reason.DEPENDENCY if run is None else run.reason,
        attempt=0 if run is None else run.attempt,
        error="" if run is None else run.error,
        artifact=None if standing.artifact is None else msgspec.Raw(standing.artifact),
        checkpoint=None if standing.checkpoint is None else msgspec.Raw(standing.checkpoint),
        started_at=None if run is None else timestamp(run.started_at),
        ended_at=None if run is None else timestamp(run.ended_at),
    )


def routes() -> list[Route[Any, Any]]:
    every = "/api/v2/runs/{id:int}/steps"
    return [
        Route(
            "GET",
            every,
            list_steps,
            Scope.RUN_READ,
            response=list[StepView],
            summary="The steps of a chain's run",
            errors=(NotFound,),
        ),
        *(
            Route(
                "POST",
                f"{every}/{{step}}/{verb}",
                handler,
                Scope.RUN_CONTROL,
                request=StepAction,
                response=RunView,
                optional_body=True,
                summary=summary,
                errors=(NotFound, InvalidState),
                name=f"{verb}_step",
            )
            for verb, handler, summary in (
                ("retry", retry, "Try a step of a chain again"),
                ("complete", complete, "Take a step of a chain as done"),
            )
        ),
    ]
