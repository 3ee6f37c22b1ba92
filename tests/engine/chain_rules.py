"""What must be true of every chain at every moment, said once more and as plainly as possible."""

from ksana.domain.chains import Shape
from ksana.domain.graph import When
from ksana.domain.plans import read_plan, shape_of_plan
from ksana.domain.runs import Run
from ksana.domain.states import FAILURES, UNDER_WAY, Reason, State
from ksana.domain.steering import is_branched
from tests.kit.script import Delivery
from tests.kit.world import World

BY_HAND = frozenset({Reason.OPERATOR, Reason.CALLBACK})


class Witness:
    """Looks at every delivery as it comes, and at all that is stored whenever it is told to. What it finds wrong it
    writes down: an attempt that raised would only fail its step."""

    def __init__(self, world: World) -> None:
        self.problems: list[str] = []
        self.touched: set[int] = set()
        """Families in which somebody stepped in: what was over may go on after others have begun because it was."""
        self.is_torn = False
        """Whether somebody was cut off half-way through an act on families that hang together: those above may not have
        heard of it until it is repeated."""
        self._world = world
        self._shapes: dict[int, Shape] = {}
        self._fences: dict[int, int] = {}
        self._succeeded: dict[int, Run] = {}
        self._stopping: dict[int, int] = {}
        world.sink.witness = self.see

    async def see(self, delivery: Delivery) -> None:
        [run] = await self._world.store.get_runs([delivery.run_id])
        fence = delivery.context.fence
        if fence <= self._fences.get(run.id, 0):
            self._blame(run, f"was delivered with fence {fence} after {self._fences[run.id]}")
        self._fences[run.id] = max(fence, self._fences.get(run.id, 0))
        if fence > run.epoch:
            self._blame(run, f"was delivered with fence {fence} before it was claimed")
        if run.state is State.SUCCESS and run.reason not in BY_HAND:
            self._blame(run, "was delivered after its success was stored")
        if run.parent_id is not None:
            [parent] = await self._world.store.get_runs([run.parent_id])
            children = await self._world.store.children(parent.id)
            shape = self._shape(parent)
            self._bounded(parent, shape, children)
            self._begun(parent, shape, children, next(place for place, one in enumerate(children) if one.id == run.id))

    async def look(self) -> None:
        """Judge all families as they are stored now, while nothing moves."""
        for run in await self._world.runs():
            before = self._succeeded.get(run.id)
            if before is not None and before != run:
                self._blame(run, f"had succeeded at epoch {before.epoch}")
            if run.state is State.SUCCESS:
                self._succeeded[run.id] = run
            if self._stopping.pop(run.id, None) == run.epoch - 1 and run.state is not State.CANCELED:
                self._blame(run, "was stopping and is not canceled")
            if run.state is State.STOPPING:
                self._stopping[run.id] = run.epoch
            if run.input is not None and (children := await self._world.store.children(run.id)):
                self._family(run, children)
        assert not self.problems, "\n".join(self.problems)

    def _family(self, parent: Run, children: list[Run]) -> None:
        shape = self._shape(parent)
        if len(children) != len(shape.needs):
            self._blame(parent, f"has {len(children)} children and {len(shape.needs)} steps")
            return
        if self.is_torn and any(child.input is not None for child in children):
            return
        self._bounded(parent, shape, children)
        for place, child in enumerate(children):
            if child.state in UNDER_WAY or child.started_at is not None:
                self._begun(parent, shape, children, place)
            elif (child.state, child.reason) == (State.SKIPPED, Reason.DEPENDENCY):
                self._never_runs(shape, children, place)
        states = [child.state for child in children]
        is_busy = any(state in UNDER_WAY for state in states)
        if is_branched(parent) and not is_busy:
            self._blame(parent, f"goes on and nothing of it does: {states}")
        if parent.state.is_final and parent.reason is Reason.CHILDREN and parent.state is not State.TIMEOUT:
            has_failed = any(state in FAILURES for state in states)
            follows = State.CANCELED if State.CANCELED in states else State.SUCCESS
            is_held_up = shape.fail_fast and has_failed
            if is_busy or (State.WAITING in states and not is_held_up):
                self._blame(parent, f"is over and its steps are not: {states}")
            if parent.state is not (State.FAILED if has_failed else follows):
                self._blame(parent, f"ended otherwise than its steps: {states}")

    def _bounded(self, parent: Run, shape: Shape, children: list[Run]) -> None:
        # One that goes on with its children does so at once.
        again = {child.id for child in children if is_branched(child)} & self.touched
        count = sum(child.state in UNDER_WAY and child.id not in again for child in children)
        if shape.max_parallel is not None and count > shape.max_parallel:
            self._blame(parent, f"has {count} steps under way and allows {shape.max_parallel}")

    def _begun(self, parent: Run, shape: Shape, children: list[Run], place: int) -> None:
        """A step that has begun may have done so."""
        needs = [children[need] for need in shape.needs[place]]
        when = shape.whens[place]
        if when is When.ALL_SUCCESS:
            may_start = all(need.state is State.SUCCESS for need in needs)
        elif parent.id in self.touched:
            may_start = True
        else:
            may_start = all(need.state.is_final for need in needs)
            may_start &= when is When.ALL_DONE or any(need.state in FAILURES for need in needs)
        if not may_start:
            self._blame(children[place], f"began ({when}) while it needs {[need.state for need in needs]}")

    def _never_runs(self, shape: Shape, children: list[Run], place: int) -> None:
        states = [children[need].state for need in shape.needs[place]]
        match shape.whens[place]:
            case When.ALL_SUCCESS:
                is_right = any(state.is_final and state is not State.SUCCESS for state in states)
            case When.ANY_FAILED:
                is_right = all(state.is_final and state not in FAILURES for state in states)
            case When.ALL_DONE:
                is_right = False
        if not is_right:
            self._blame(children[place], f"was skipped while it needs {states}")

    def _shape(self, parent: Run) -> Shape:
        if parent.id not in self._shapes:
            self._shapes[parent.id] = shape_of_plan(read_plan(parent.input))
        return self._shapes[parent.id]

    def _blame(self, run: Run, what: str) -> None:
        self.problems.append(f"{self._world.now:%H:%M:%S} run {run.id} ({run.step}, {run.state}, {run.reason}): {what}")
