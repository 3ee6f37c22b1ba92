"""What every test may ask for: servers and databases of its own, a recording HTTP sink, real processes."""

import itertools
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest

from tests.kit.migrated import migrate
from tests.kit.sink import Sink
from tests.services.browser import VARIABLE as CHROMIUM
from tests.services.browser import find_chromium
from tests.services.databases import Databases, FreshDatabase, SharedDatabase
from tests.services.loop import LoopThread
from tests.services.memory import is_in_memory, keep_files_in_memory
from tests.services.mysql import MySql
from tests.services.names import RunName
from tests.services.postgres import Postgres
from tests.services.provide import Found, Servers
from tests.services.service import AdmissionError

_LOOP = pytest.StashKey[LoopThread]()
_SERVERS = pytest.StashKey[Servers]()
_BROWSER = pytest.StashKey[Found]()
_WORKER_INPUT = "ksana_servers"
_REDIS_NUMBERS = itertools.count(1)
_SLOW = ("tests/chaos/", "tests/engine/test_anything_may_happen.py", "tests/api/test_openapi_is_honest.py")


class Handed(msgspec.Struct, frozen=True):
    """What the controlling process tells its workers."""

    run: str
    found: dict[str, Found]
    browser: Found


# The same examples every time: a red test is a change's fault. KSANA_TEST_EXPLORE=1 looks for new ones.
hypothesis.settings.register_profile("ksana", derandomize=os.environ.get("KSANA_TEST_EXPLORE") != "1", deadline=None)
hypothesis.settings.load_profile("ksana")


def pytest_configure(config: pytest.Config) -> None:
    chromium = os.environ.get(CHROMIUM)
    # What a developer has exported for a server of their own must not decide what the tests see.
    for name in [n for n in os.environ if n.startswith("KSANA_") and not n.startswith("KSANA_TEST_")]:
        del os.environ[name]
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    keep_files_in_memory()
    loop = LoopThread()
    loop.__enter__()
    config.stash[_LOOP] = loop
    now = datetime.now(UTC)
    # In memory is quicker than where every commit is flushed to a disk; a few tests do not make up for the start.
    is_worth_it = is_in_memory() and bool(config.getoption("numprocesses", None))
    servers = Servers(RunName.of_this_process(now), loop, _say, prefers_private=is_worth_it)
    config.stash[_SERVERS] = servers
    try:
        servers.open(now)
        config.stash[_BROWSER] = find_chromium(chromium, _say)
    except AdmissionError as refusal:
        raise pytest.UsageError(f"what was named for the tests is of no use: {refusal}") from refusal


def pytest_unconfigure(config: pytest.Config) -> None:
    if (servers := config.stash.get(_SERVERS, None)) is not None:
        servers.close()
    if (loop := config.stash.get(_LOOP, None)) is not None:
        loop.__exit__(None, None, None)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput[_WORKER_INPUT] = msgspec.json.encode(_handed(node.config)).decode()


def _handed(config: pytest.Config) -> Handed:
    servers = config.stash[_SERVERS]
    return Handed(str(servers.run), servers.found, config.stash[_BROWSER])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Those of many seconds first, in an order as random as before: no worker is left alone with one at the end.
    items.sort(key=lambda item: not item.nodeid.startswith(_SLOW))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    result = yield
    if (servers := config.stash.get(_SERVERS, None)) is not None:
        used = [f"{store} {found.how}" for store, found in servers.found.items() if found.url]
        skipped = [f"{store} ({found.how})" for store, found in servers.found.items() if not found.url]
        if used:
            terminalreporter.line(f"stores: {', '.join(used)}")
        if skipped:
            terminalreporter.line(f"SKIPPED STORES: {', '.join(skipped)}", yellow=True, bold=True)
    if (browser := config.stash.get(_BROWSER, None)) is not None and browser.url is None:
        terminalreporter.line(f"SKIPPED BROWSER: {browser.how}", yellow=True, bold=True)
    reasons = {str(report.longrepr[2]) for report in terminalreporter.getreports("skipped")}
    if tools := sorted(reason.partition("TOOL: ")[2] for reason in reasons if "TOOL: " in reason):
        terminalreporter.line(f"SKIPPED TOOLS: {'; '.join(tools)}", yellow=True, bold=True)
    return result


def _say(text: str) -> None:
    os.write(2, f"ksana tests: {text}\n".encode())


@pytest.fixture(scope="session")
def service_loop() -> Iterator[LoopThread]:
    """A loop beside the tests' own, on which fixtures talk to the servers."""
    with LoopThread() as loop:
        yield loop


@pytest.fixture(scope="session")
def handed(pytestconfig: pytest.Config) -> Handed:
    if (text := getattr(pytestconfig, "workerinput", {}).get(_WORKER_INPUT)) is not None:
        return msgspec.json.decode(text, type=Handed)
    return _handed(pytestconfig)


@pytest.fixture(scope="session")
def own_prefix(pytestconfig: pytest.Config, handed: Handed) -> str:
    """How everything begins that this worker puts on a shared server."""
    worker = getattr(pytestconfig, "workerinput", {}).get("workerid", "main")
    return f"{handed.run}_{worker}"


def _url_or_skip(handed: Handed, store: str) -> str:
    found = handed.found[store]
    if found.url is None:
        pytest.skip(f"no {store}: {found.how}")
    return found.url


@pytest.fixture(scope="session")
def postgres_url(handed: Handed) -> str:
    """A PostgreSQL server on which databases can be made."""
    return _url_or_skip(handed, "postgres")


@pytest.fixture(scope="session")
def mysql_url(handed: Handed) -> str:
    """A MariaDB or MySQL server on which databases can be made."""
    return _url_or_skip(handed, "mysql")


@pytest.fixture(scope="session")
def redis_url(handed: Handed) -> str:
    """A Redis server, maybe somebody's: write under `fresh_redis_prefix` only, never flush."""
    return _url_or_skip(handed, "redis")


@pytest.fixture(scope="session")
def postgres_databases(postgres_url: str, own_prefix: str, service_loop: LoopThread) -> Iterator[Databases]:
    databases = Databases(Postgres(), postgres_url, own_prefix, service_loop)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def mysql_databases(mysql_url: str, own_prefix: str, service_loop: LoopThread) -> Iterator[Databases]:
    databases = Databases(MySql(), mysql_url, own_prefix, service_loop)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def postgres_shared(postgres_databases: Databases) -> SharedDatabase:
    """This worker's database: `emptied(migrate)` gives its URL with the schema up and no rows (a few ms)."""
    return postgres_databases.shared


@pytest.fixture(scope="session")
def mysql_shared(mysql_databases: Databases) -> SharedDatabase:
    """This worker's database: `emptied(migrate)` gives its URL with the schema up and no rows (a few ms)."""
    return mysql_databases.shared


@pytest.fixture
def fresh_postgres_database(postgres_databases: Databases) -> Iterator[FreshDatabase]:
    """Make virgin databases (about 0.1 s each), gone after the test."""
    yield from _fresh(postgres_databases)


@pytest.fixture
def fresh_mysql_database(mysql_databases: Databases) -> Iterator[FreshDatabase]:
    """Make virgin databases, gone after the test."""
    yield from _fresh(mysql_databases)


def _fresh(databases: Databases) -> Iterator[FreshDatabase]:
    made: list[str] = []

    def fresh() -> str:
        made.append(databases.fresh())
        return made[-1]

    yield fresh
    for url in made:
        databases.drop(url)


@pytest.fixture
def fresh_redis_prefix(redis_url: str, own_prefix: str) -> str:
    """A prefix no other test has; its keys go when the run ends."""
    return f"{own_prefix}_{next(_REDIS_NUMBERS)}:"


@pytest.fixture
def fresh_redis_database(redis_url: str, own_prefix: str) -> FreshDatabase:
    """Name prefixes under which there is nothing yet; their keys go when the run ends."""
    return lambda: f"{redis_url}?prefix={own_prefix}_{next(_REDIS_NUMBERS)}"


@pytest.fixture
def fresh_sqlite_path(tmp_path: Path) -> Path:
    """Where a database file may be made; there is none yet."""
    return tmp_path / "ksana.db"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory, service_loop: LoopThread) -> Path:
    """A SQLite file with the schema up and no rows, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    service_loop.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture
def migrated_sqlite_path(migrated_file: Path, tmp_path: Path) -> Path:
    """A SQLite file of this test's own with the schema up and no rows (below a millisecond)."""
    return Path(shutil.copy(migrated_file, tmp_path / "ksana.db"))


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    """An HTTP server in this very loop that records what it gets and answers as told."""
    async with Sink() as sink:
        yield sink
