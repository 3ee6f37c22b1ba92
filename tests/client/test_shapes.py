"""The values of the client and what the server answers: no field that only one of them knows, and nothing the server
may send that the client cannot read."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect as shapes

from ksana.api.queue.item_shapes import EnqueuedView, ItemDetail, ItemView, PulledView
from ksana.api.queue.limiting import QueueSettingsView
from ksana.api.queue.objects import ObjectView
from ksana.api.v2.job_shapes import JobView
from ksana.api.v2.operations import OperationView
from ksana.api.v2.run_shapes import AttemptView, FireView, RunView
from ksana.api.v2.schedules import PreviewView
from ksana.api.v2.steps import StepView
from ksana.client import items, objects, queue_settings, results

PAIRS = [
    (results.Run, RunView),
    (results.Job, JobView),
    (results.Attempt, AttemptView),
    (results.Step, StepView),
    (results.Fire, FireView),
    (results.Preview, PreviewView),
    (results.Operation, OperationView),
    (queue_settings.QueueSettings, QueueSettingsView),
    (objects.GovernedObject, ObjectView),
]
ITEMS = (ItemView, EnqueuedView, PulledView, ItemDetail)


class Comparison:
    """Walks along both shapes and notes where they differ."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.seen: set[type] = set()

    def structs(self, ours: type, theirs: type, where: str) -> None:
        if ours in self.seen:
            return
        self.seen.add(ours)
        client, server = _fields(ours), _fields(theirs)
        self.problems += [f"{where}.{name} is sent, and the client lacks it" for name in server.keys() - client.keys()]
        self.problems += [f"{where}.{name} is never sent" for name in client.keys() - server.keys()]
        for name in client.keys() & server.keys():
            if client[name].required and not server[name].required:
                self.problems.append(f"{where}.{name} may be left out, and the client insists on it")
            self.types(client[name].type, server[name].type, f"{where}.{name}")

    def types(self, ours: shapes.Type, theirs: shapes.Type, where: str) -> None:
        client, server = list(_choices(ours)), list(_choices(theirs))
        if any(isinstance(one, shapes.AnyType) for one in client):
            return
        for sent in server:
            fitting = [one for one in client if _fits(one, sent)]
            if not fitting:
                self.problems.append(f"{where} may be {_shown(sent)}, which the client cannot read")
            for one in fitting:
                self._inside(one, sent, where)

    def _inside(self, ours: shapes.Type, theirs: shapes.Type, where: str) -> None:
        match ours, theirs:
            case shapes.StructType(cls=client), shapes.StructType(cls=server):
                self.structs(client, server, where)
            case shapes.ListType(item_type=client_item), shapes.ListType(item_type=server_item):
                self.types(client_item, server_item, f"{where}[]")
            case shapes.DictType(value_type=client_value), shapes.DictType(value_type=server_value):
                self.types(client_value, server_value, f"{where}{{}}")


def _fields(shape: Any) -> dict[str, shapes.Field]:
    info = shapes.type_info(shape)
    assert isinstance(info, shapes.StructType)
    return {field.encode_name: field for field in info.fields}


def _choices(shape: shapes.Type) -> Iterator[shapes.Type]:
    if isinstance(shape, shapes.Metadata):
        yield from _choices(shape.type)
    elif isinstance(shape, shapes.UnionType):
        for one in shape.types:
            yield from _choices(one)
    else:
        yield shape


def _fits(ours: shapes.Type, theirs: shapes.Type) -> bool:
    match ours, theirs:
        case shapes.StructType(tag=client_tag), shapes.StructType(tag=server_tag):
            return client_tag == server_tag
        case shapes.DateTimeType(), shapes.StrType():
            return True
        case ((shapes.EnumType() | shapes.LiteralType()), (shapes.EnumType() | shapes.LiteralType())):
            return _values(ours) >= _values(theirs)
        case shapes.StrType(), (shapes.EnumType() | shapes.LiteralType()):
            return True
        case shapes.FloatType(), shapes.IntType():
            return True
    return type(ours) is type(theirs)


def _values(shape: shapes.EnumType | shapes.LiteralType) -> set[Any]:
    return {one.value for one in shape.cls} if isinstance(shape, shapes.EnumType) else set(shape.values)


def _shown(shape: shapes.Type) -> str:
    return f"{type(shape).__name__} {getattr(shape, 'cls', getattr(shape, 'values', ''))}"


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_the_client_knows_what_the_server_sends(ours: type, theirs: type) -> None:
    comparison = Comparison()
    comparison.structs(ours, theirs, ours.__name__)
    assert comparison.problems == []


def test_every_value_of_the_client_is_compared() -> None:
    comparison = Comparison()
    for ours, theirs in PAIRS:
        comparison.structs(ours, theirs, ours.__name__)
    values = {
        one
        for _, one in inspect.getmembers(results, inspect.isclass)
        if issubclass(one, msgspec.Struct) and one.__module__ == results.__name__
    }
    # A page is whatever it is a page of.
    assert {one.__name__ for one in values - comparison.seen} == {"Page"}


def test_an_item_is_what_any_answer_about_items_says() -> None:
    client = _fields(items.Item)
    answers = [_fields(view) for view in ITEMS]
    sent = {name for fields in answers for name in fields}
    assert client.keys() == sent
    everywhere = {name for name in sent if all(name in fields for fields in answers)}
    # What only some answers have must not be insisted on in the others.
    assert {name for name, field in client.items() if field.required} <= everywhere
    for view, fields in zip(ITEMS, answers, strict=True):
        comparison = Comparison()
        for name, field in fields.items():
            comparison.types(client[name].type, field.type, f"{view.__name__}.{name}")
        assert comparison.problems == []


def test_a_difference_is_found() -> None:
    class Ours(msgspec.Struct):
        gone: int
        kept: str
        maybe: int

    class Theirs(msgspec.Struct):
        kept: str | None
        new: int
        maybe: int = 1

    comparison = Comparison()
    comparison.structs(Ours, Theirs, "it")
    assert sorted(problem.split()[0] for problem in comparison.problems) == ["it.gone", "it.kept", "it.maybe", "it.new"]
