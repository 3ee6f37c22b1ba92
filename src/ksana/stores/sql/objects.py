"""Objects that items are about. Whoever changes one holds the lock of its row, and locks several in the order of their
subjects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ksana.domain.changes import Overtaken
from ksana.domain.objects import GovernedObject, ObjectQuery
from ksana.domain.queries import Page
from ksana.domain.times import to_micros
from ksana.stores.sql.governed_rows import object_from_row, object_to_row
from ksana.stores.sql.governed_statements import LOCK_OBJECTS, OBJECTS, OBJECTS_BY_SUBJECT
from ksana.stores.sql.paging import count, page
from ksana.stores.sql.tx import Tx
from ksana.stores.sql.where import Where


async def get_objects(tx: Tx, subjects: Iterable[str]) -> dict[str, GovernedObject]:
    wanted = sorted(set(subjects))
    found = map(object_from_row, await tx.rows(OBJECTS_BY_SUBJECT, subjects=wanted) if wanted else ())
    return {governed.subject: governed for governed in found}


async def lock_objects(tx: Tx, subjects: Iterable[str]) -> dict[str, GovernedObject]:
    """Those of the objects that are known, held until the transaction ends."""
    wanted = sorted(set(subjects))
    found = map(object_from_row, await tx.rows(LOCK_OBJECTS, subjects=wanted) if wanted else ())
    return {governed.subject: governed for governed in found}


async def write_objects(tx: Tx, objects: Iterable[GovernedObject]) -> None:
    """Overwrite objects that are there and locked."""
    if rows := [object_to_row(governed) for governed in objects]:
        await tx.update(OBJECTS, rows)


async def change_objects(tx: Tx, objects: Sequence[GovernedObject]) -> None:
    """Put each on top of the version just below its own. Overtaken if that is not there."""
    known = await lock_objects(tx, [governed.subject for governed in objects])
    versions = {subject: governed.version for subject, governed in known.items()}
    last: dict[str, GovernedObject] = {}
    for governed in objects:
        if governed.version != versions.get(governed.subject, 0) + 1:
            raise Overtaken(f"{governed.subject} is no longer what it was")
        versions[governed.subject] = governed.version
        last[governed.subject] = governed
    await write_objects(tx, [governed for subject, governed in last.items() if subject in known])
    new = [object_to_row(last[subject]) for subject in sorted(last.keys() - known.keys())]
    # Nothing was there to lock: somebody else may have added one of them meanwhile.
    if new and await tx.insert_new(OBJECTS, new) < len(new):
        raise Overtaken("one of the objects is new no longer")


async def find_objects(tx: Tx, query: ObjectQuery) -> Page[GovernedObject]:
    where = _conditions(query)
    source = "FROM ksana_objects"
    total = await count(tx, source, where)
    rows = await page(tx, ", ".join(OBJECTS.names), source, where, "type, id", query)
    return Page([object_from_row(row) for row in rows], total)


def _conditions(query: ObjectQuery) -> Where:
    where = Where()
    for name in ("type", "risk", "epistemic"):
        if (wanted := getattr(query, name)) is not None:
            where.add(f"{name} = :{name}", **{name: str(wanted)})
    if query.due_before is not None:
        where.add("next_action_at < :due_before", due_before=to_micros(query.due_before))
    return where
