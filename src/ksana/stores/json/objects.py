"""Objects that items of the queue are about."""

from __future__ import annotations

from collections.abc import Iterable

from ksana.domain.changes import Overtaken
from ksana.domain.objects import GovernedObject, ObjectQuery
from ksana.domain.queries import Page
from ksana.stores.governed_search import object_fits
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def get_objects(tables: Tables, subjects: Iterable[str]) -> dict[str, GovernedObject]:
    known = tables.objects.by_subject
    return {subject: known[subject] for subject in subjects if subject in known}


def put_object(tx: Tx, governed: GovernedObject) -> None:
    """Store an object on top of the version just below its own; Overtaken if that is not there."""
    stored = tx.tables.objects.by_subject.get(governed.subject)
    if governed.version != (0 if stored is None else stored.version) + 1:
        raise Overtaken(f"{governed.subject} has changed")
    tx.put(tx.tables.objects, (governed.type, governed.id), governed)


def find_objects(tables: Tables, query: ObjectQuery) -> Page[GovernedObject]:
    found = [governed for _, governed in sorted(tables.objects.rows.items()) if object_fits(governed, query)]
    return Page(found[query.offset : query.offset + query.limit], len(found))
