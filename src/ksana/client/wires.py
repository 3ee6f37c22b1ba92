"""What carries talks: one wire for programs that block, one for programs that await."""

from __future__ import annotations

from typing import Protocol

from ksana.client.talks import Manners


class Wire(Protocol):
    """Knows the server and how to behave towards it."""

    manners: Manners
