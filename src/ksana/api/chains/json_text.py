"""JSON that travels as text inside JSON: dags and artifacts. It is read under the same rules as a body."""

from __future__ import annotations

from typing import Any

from ksana.api.kit import encode
from ksana.api.kit.strict_json import read_tree
from ksana.domain.errors import InvalidArgument, KsanaError

DAG = "dagJson"
ARTIFACT = "artifactJson"


def read_dag(given: str | dict[str, Any]) -> dict[str, Any]:
    """The dag a request gives as text or as an object; some clients encode the text twice."""
    dag: Any = given
    if isinstance(dag, str):
        dag = _read(dag, DAG)
        if isinstance(dag, str):
            dag = _read(dag, DAG)
    if not isinstance(dag, dict):
        raise InvalidArgument.of(DAG, "must be a JSON object with nodes")
    return dag


def read_artifact(given: Any) -> bytes | None:
    """The artifact a request gives as text or as a value, as it is kept; null and a blank text say nothing."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return None
    if not isinstance(given, str):
        return encode(given)
    _read(given, ARTIFACT)
    return given.strip().encode()


def _read(text: str, field: str) -> Any:
    if not text.strip():
        raise InvalidArgument.of(field, "must not be blank")
    try:
        return read_tree(text.encode())
    except UnicodeEncodeError:
        raise InvalidArgument.of(field, "must be JSON: it holds half of a character") from None
    except KsanaError as error:
        raise InvalidArgument.of(field, f"must be JSON: {error.message}") from None
