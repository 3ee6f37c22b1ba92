"""Handlers are tried in the world of the engine."""

from tests.engine.conftest import create_world, sqlite_world_url, world

__all__ = ["create_world", "sqlite_world_url", "world"]
