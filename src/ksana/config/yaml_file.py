"""The configuration file as text per dotted key, each with its line. Nothing in it is ever constructed.

Scalars are taken as written; YAML's own typing (`no` is false, `1:30` is 90) never gets a say.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from ksana.config.kinds import Raw
from ksana.config.names import BY_KEY, SECTIONS, did_you_mean
from ksana.domain.errors import Problem

_NULL = "tag:yaml.org,2002:null"
_STANDARD = "tag:yaml.org,2002:"


class Entry(NamedTuple):
    raw: Raw
    source: str


class ConfigFile(NamedTuple):
    entries: dict[str, Entry]
    problems: list[Problem]


def read_config(path: Path) -> ConfigFile:
    """Every setting in the file by its key as written, and everything that is wrong with the file."""
    try:
        root = yaml.compose(path.read_text("utf-8-sig"), Loader=yaml.SafeLoader)
    except OSError as error:
        return _broken(path, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return _broken(path, "is not UTF-8 text")
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        return _broken(path, f"is not valid YAML{line}: {error.problem}")
    except yaml.YAMLError as error:
        return _broken(path, f"is not valid YAML: {error}")
    walk = _Walk(path)
    if root is not None:
        walk.section(root, "")
    return ConfigFile(walk.entries, walk.problems)


def _broken(path: Path, what: str) -> ConfigFile:
    return ConfigFile({}, [Problem(str(path), what)])


class _Walk:
    """Descends only into sections the table knows, so an alias that contains itself cannot trap it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: dict[str, Entry] = {}
        self.problems: list[Problem] = []

    def section(self, node: yaml.Node, prefix: str) -> None:
        if node.tag == _NULL:
            return
        if not isinstance(node, yaml.MappingNode):
            self._refuse(prefix.rstrip("."), node, "must be a section of settings")
            return
        for key, (name, value) in self._pairs(node, prefix).items():
            if key in SECTIONS:
                self.section(value, f"{key}.")
            elif key not in BY_KEY:
                self._refuse(key, name, f"is not a setting{did_you_mean(key)}")
            elif value.tag != _NULL:
                self._take(key, value)

    def _pairs(self, node: yaml.MappingNode, prefix: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Name and value of each pair by dotted key. A name given twice is a fault: YAML would drop one."""
        pairs: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                self._refuse(prefix.rstrip("."), name, "has a key that is not plain text")
            elif f"{prefix}{name.value}" in pairs:
                self._refuse(f"{prefix}{name.value}", name, "is given twice; keep one")
            else:
                pairs[f"{prefix}{name.value}"] = (name, value)
        return pairs

    def _take(self, key: str, node: yaml.Node) -> None:
        raw = self._raw(key, node)
        if raw is not None:
            written_as = "" if BY_KEY[key].key == key else f" ({key})"
            self.entries[key] = Entry(raw, f"{self._where(node)}{written_as}")

    def _raw(self, key: str, node: yaml.Node) -> Raw | None:
        if not node.tag.startswith(_STANDARD):
            self._refuse(key, node, f"has the tag {node.tag}; write a plain value")
        elif isinstance(node, yaml.ScalarNode):
            return str(node.value)
        elif isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
            return [str(item.value) for item in node.value]
        elif isinstance(node, yaml.MappingNode):
            prefix = f"{key}."
            pairs = self._pairs(node, prefix)
            if all(isinstance(value, yaml.ScalarNode) for _, value in pairs.values()):
                return {item.removeprefix(prefix): str(value.value) for item, (_, value) in pairs.items()}
            self._refuse(key, node, "must not be nested deeper")
        else:
            self._refuse(key, node, "must not be nested deeper")
        return None

    def _where(self, node: yaml.Node) -> str:
        return f"{self._path}:{node.start_mark.line + 1}"

    def _refuse(self, key: str, node: yaml.Node, what: str) -> None:
        self.problems.append(Problem(key or str(self._path), f"{what} (in {self._where(node)})"))
