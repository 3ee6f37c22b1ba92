"""A module whose functions tests import by path, with some things in it that must not be reachable."""

from __future__ import annotations

import functools
import os
from os import getcwd
from typing import Any

path_of_other = os


def add(a: int, b: int = 0) -> int:
    return a + b


async def add_async(a: int, b: int = 0) -> int:
    return a + b


add_one = functools.partial(add, 1)
current_directory = functools.partial(getcwd)
number = 7
listing = os.listdir


class Ledger:
    @staticmethod
    def total(values: list[int]) -> int:
        return sum(values)


class Greeter:
    def __call__(self, name: str) -> str:
        return f"hello {name}"


greet = Greeter()


def __getattr__(name: str) -> Any:
    if name == "explosive":
        raise RuntimeError("this attribute cannot be read")
    raise AttributeError(name)
