from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.keys import KEY_RANDOM_BYTES, Scope, allows, new_key, parse_key, verify

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RANDOM = bytes(range(KEY_RANDOM_BYTES))


def test_a_new_key_is_verified_by_its_text_and_stored_without_its_secret() -> None:
    made = new_key(RANDOM, name="ci", scopes=[Scope.JOB_READ], created_at=NOW)
    presented = parse_key(made.text)
    assert presented is not None
    assert made.text == f"ksk_{presented.id}_{presented.secret}"
    assert presented.id == made.stored.id
    assert verify(made.stored, presented)
    assert presented.secret not in repr(made.stored)
    assert RANDOM[8:] not in msgspec.msgpack.encode(made.stored)


def test_another_secret_or_a_revoked_key_is_not_verified() -> None:
    made = new_key(RANDOM, name="ci", scopes=[Scope.JOB_READ], created_at=NOW)
    presented = parse_key(made.text)
    assert presented is not None
    assert not verify(made.stored, presented._replace(secret="0" * 64))
    assert not verify(msgspec.structs.replace(made.stored, revoked_at=NOW), presented)


@pytest.mark.parametrize("text", ["", "ksk_", "ksk_a_b", "KSK_" + "0" * 16 + "_" + "0" * 64, "ksk_" + "0" * 81, "é"])
def test_what_is_no_key_is_not_parsed(text: str) -> None:
    assert parse_key(text) is None


def test_admin_implies_every_scope_and_no_other_does() -> None:
    assert all(allows(frozenset({Scope.ADMIN}), scope) for scope in Scope)
    assert allows(frozenset({Scope.JOB_READ}), Scope.JOB_READ)
    assert not allows(frozenset({Scope.JOB_READ}), Scope.JOB_WRITE)


def test_a_key_needs_a_name_a_scope_and_enough_randomness() -> None:
    with pytest.raises(InvalidArgument):
        new_key(RANDOM, name=" ", scopes=[Scope.ADMIN], created_at=NOW)
    with pytest.raises(InvalidArgument):
        new_key(RANDOM, name="ci", scopes=[], created_at=NOW)
    with pytest.raises(ValueError, match="40 random bytes"):
        new_key(b"short", name="ci", scopes=[Scope.ADMIN], created_at=NOW)
