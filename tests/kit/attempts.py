"""Waiting for attempts that take real time, such as calls to a real sink."""

from ksana.engine.runner import Runner


async def an_attempt_ends(runner: Runner) -> None:
    """Return once there is something for the runner to do; asking it over and over would keep the store busy."""
    places = runner._places
    if places.held and not (places.ended or runner._results):
        runner._wake.clear()
        await runner._wake.wait()
