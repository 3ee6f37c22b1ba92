"""The variables the document names, with its defaults."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ksana.config.model import LogLevel
from tests.config.loading import Place


def test_the_defaults_are_those_of_the_document(tmp_path: Path) -> None:
    """K-80, K-81, K-82, K-83, K-85, K-86; the three retries of K-84 are this surface's own, see test_calls.py."""
    settings = Place(tmp_path).load()
    assert settings.server.port == 7100
    assert settings.storage.dir == tmp_path / "data"
    assert settings.executor.worker_pool_size == 4
    assert settings.executor.request_timeout == timedelta(seconds=10)
    assert settings.executor.default_retry.max_retries is None
    assert settings.executor.default_retry.initial_delay == timedelta(seconds=5)
    assert settings.logging.level is LogLevel.INFO


def test_every_variable_of_the_document_counts(tmp_path: Path) -> None:
    """K-80, K-82, K-83, K-84, K-85, K-86"""
    settings = Place(tmp_path).load(
        PORT="7555", WORKERS="2", DEFAULT_TIMEOUT="3s", MAX_RETRIES="7", RETRY_BACKOFF="1m", LOG_LEVEL="debug"
    )
    assert (settings.server.port, settings.executor.worker_pool_size) == (7555, 2)
    assert settings.executor.request_timeout == timedelta(seconds=3)
    assert settings.executor.default_retry.max_retries == 7
    assert settings.executor.default_retry.initial_delay == timedelta(minutes=1)
    assert settings.logging.level is LogLevel.DEBUG


def test_the_directory_goes_by_two_names(tmp_path: Path) -> None:
    """K-13, K-81, X-55: the specific one wins."""
    place = Place(tmp_path)
    assert place.load(DATA_DIR="/tmp/x").storage.dir == Path("/tmp/x")
    assert place.load(KSANA_DATA="/tmp/y").storage.dir == Path("/tmp/y")
    assert place.load(DATA_DIR="/tmp/x", KSANA_DATA="/tmp/y").storage.dir == Path("/tmp/y")
