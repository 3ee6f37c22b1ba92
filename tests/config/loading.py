"""A directory of one's own and a short way to load settings in it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ksana.config import Settings, load_settings
from ksana.domain.errors import InvalidArgument, Problem


class Place:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.system = directory / "etc" / "ksana.yaml"

    def file(self, text: str, name: str = "ksana.yaml") -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def load(
        self,
        variables: Mapping[str, str] | None = None,
        /,
        *,
        config: Path | None = None,
        flags: Mapping[str, object] | None = None,
        **environ: str,
    ) -> Settings:
        return load_settings(flags or {}, {**environ, **(variables or {})}, config, self.directory, self.system)

    def problems(
        self,
        variables: Mapping[str, str] | None = None,
        /,
        *,
        flags: Mapping[str, object] | None = None,
        **environ: str,
    ) -> list[Problem]:
        with pytest.raises(InvalidArgument) as caught:
            self.load({**environ, **(variables or {})}, flags=flags)
        return caught.value.problems

    def problem(
        self,
        variables: Mapping[str, str] | None = None,
        /,
        *,
        flags: Mapping[str, object] | None = None,
        **environ: str,
    ) -> Problem:
        [problem] = self.problems({**environ, **(variables or {})}, flags=flags)
        return problem
