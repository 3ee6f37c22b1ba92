"""The composition: what the settings say is what the parts are told."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from ksana import app
from ksana.app import Program, given_keys, serve
from ksana.config import Settings, load_settings
from ksana.domain.errors import InvalidArgument
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.keys import KEY_RANDOM_BYTES, Scope, new_key, parse_key, verify
from ksana.domain.policies import OnUncertain, Retry, RetryStrategy, Timeouts
from tests.kit.clock import START
from tests.kit.sink import Reply, Sink


def settings_of(directory: Path, **environment: str) -> Settings:
    return load_settings({}, {f"KSANA_{name}": value for name, value in environment.items()}, None, directory)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "http://127.0.0.1:9/api/v1/callbacks"),
        ({"HOST": "::1"}, "http://[::1]:9/api/v1/callbacks"),
        ({"BASE_PATH": "/k"}, "http://127.0.0.1:9/k/api/v1/callbacks"),
        ({"PUBLIC_URL": "https://k.example/x/"}, "https://k.example/x/api/v1/callbacks"),
        ({"CALLBACK_URL": "https://c.example/cb"}, "https://c.example/cb"),
    ],
)
def test_targets_are_told_to_call_back_where_the_server_is(
    tmp_path: Path, environment: dict[str, str], expected: str
) -> None:
    engine = Program(settings_of(tmp_path, **environment)).engine(9)
    assert engine.options.callback_base == expected


def test_the_engine_behaves_as_the_settings_say(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, WORKERS="9", POLL="2s", LEASE="20s", BATCH="7", GRACE="3s", MAX_RECLAIMS="5")
    options = Program(settings, queues=("slow",)).engine(9).options
    assert (options.workers, options.batch, options.max_reclaims, options.queues) == (9, 7, 5, ("slow",))
    assert (options.poll, options.lease, options.grace) == (
        timedelta(seconds=2),
        timedelta(seconds=20),
        timedelta(seconds=3),
    )
    assert Program(settings).engine(9).options.queues == ("default",)


async def test_a_failed_run_reaches_the_address_of_the_settings(tmp_path: Path, sink: Sink) -> None:
    """C-14: from the setting to a signed call; C-141: the engine is told of recovery.running."""
    url = sink.on("/alert", Reply(204))
    settings = settings_of(tmp_path, ALERT_URLS=url, SIGNING_SECRET="0123456789abcdef", POLL="10ms", RECOVERY="fail")
    async with Program(settings).running(9, is_exposed=False) as engine:
        assert engine.options.on_uncertain is OnUncertain.FAIL
        job = await engine.jobs.create("v2", JobSpec(name="doomed", target=TargetSpec("fail")))
        await engine.runs.trigger(job.id)
        [request] = await sink.wait_for(1)
    told = msgspec.json.decode(request.body)
    assert (told["event"], told["job"]["name"]) == ("run.failed", "doomed")
    assert request.header("webhook-id") == told["id"]
    assert (request.header("webhook-signature") or "").startswith("v1,")


def test_an_alert_address_nobody_can_use_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"alerts\.urls"):
        Program(settings_of(tmp_path, ALERT_URLS="https://no host/x".replace(" ", "|")))


def test_jobs_that_do_not_say_get_what_the_settings_say(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        MAX_RETRIES="2",
        RETRY_BACKOFF="7s",
        RETRY_STRATEGY="exponential",
        DEFAULT_TIMEOUT="30s",
        RECOVERY="fail",
        TZ="Asia/Shanghai",
    )
    defaults = app.job_defaults(settings)
    assert defaults.retry == Retry(3, RetryStrategy.EXPONENTIAL, timedelta(seconds=7))
    assert defaults.timeouts == Timeouts(total=timedelta(seconds=30))
    assert (defaults.on_uncertain, defaults.timezone) == (OnUncertain.FAIL, "Asia/Shanghai")
    assert app.job_defaults(settings_of(tmp_path)).retry == Retry()


def test_keys_of_the_settings_open_everything_and_keep_no_secret(tmp_path: Path) -> None:
    text = new_key(bytes(KEY_RANDOM_BYTES), name="k", scopes=[Scope.ADMIN], created_at=START).text
    [key] = given_keys(settings_of(tmp_path, API_KEYS=text))
    presented = parse_key(text)
    assert presented is not None
    assert verify(key, presented)
    assert key.scopes == {Scope.ADMIN}


def test_functions_are_checked_by_the_node_that_has_them(tmp_path: Path) -> None:
    config = {"function": "elsewhere"}
    assert Program(settings_of(tmp_path)).targets["python"].check(config)["function"] == "elsewhere"
    with pytest.raises(Exception, match="elsewhere"):
        Program(settings_of(tmp_path), {"here": print}).targets["python"].check(config)


async def test_a_node_whose_server_dies_ends_instead_of_living_on_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: object, sockets: list[socket.socket] | None = None) -> None:
        raise OSError("address already in use")

    monkeypatch.setattr(app._Server, "startup", fail)
    with pytest.raises(OSError, match="already in use"):
        async with asyncio.timeout(30):
            await serve(settings_of(tmp_path, PORT="0"), asyncio.Event())


async def test_a_node_told_to_stop_lets_go_of_its_port_and_leaves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings, stop = settings_of(tmp_path, PORT="0"), asyncio.Event()
    stop.set()
    with caplog.at_level("INFO", "ksana"):
        await serve(settings, stop)
    [url] = [record.url for record in caplog.records if hasattr(record, "url")]
    port = int(url.rpartition(":")[2])
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))
    store = app.store_of(settings)
    await store.open()
    assert await store.nodes() == []
    await store.close()
