"""Suites, addresses and preparers of the messaging clients' tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.amqp.namespace import HOST_NAME, NoSuchHost, Ports, connection_string, local_port
from conformance.amqp.run import REASONS
from conformance.amqp.suites import SUITES, Source, chosen_suites, distinct_names, pytest_arguments, workers_of
from conformance.outcomes import Outcome, Result, explain, read_reasons, reasons_no_longer_needed

PORTS = Ports(amqp=1672, amqps=1671, administration=1443, blob=1000)


def test_ports_survive_the_environment() -> None:
    assert Ports.from_environment(PORTS.to_environment()) == PORTS


@pytest.mark.parametrize(
    ("host", "port", "found"),
    [
        (HOST_NAME, 5671, 1671),
        (HOST_NAME, 5672, 1672),
        (HOST_NAME.upper() + ".", 443, 1443),
        ("asterism0.blob.core.windows.net", 443, 1000),
        ("localhost", 443, None),
        ("127.0.0.1", 1671, None),
    ],
)
def test_an_address_of_the_product_leads_to_the_server_under_test(host: str, port: int, found: int | None) -> None:
    assert local_port(host, port, PORTS) == found


@pytest.mark.parametrize("host", ["invalid.servicebus.windows.net", "example.org", "169.254.169.254"])
def test_no_other_host_exists(host: str) -> None:
    with pytest.raises(NoSuchHost):
        local_port(host, 443, PORTS)


def test_a_connection_string_names_the_entity_only_if_there_is_one() -> None:
    assert connection_string().endswith(";SharedAccessKey=SAS_KEY_VALUE")
    assert connection_string("rule", "key", "q") == (
        f"Endpoint=sb://{HOST_NAME}/;SharedAccessKeyName=rule;SharedAccessKey=key;EntityPath=q"
    )


def test_suites_are_run_in_their_own_order_whatever_order_names_them() -> None:
    assert [suite.name for suite in chosen_suites("checkpoint, servicebus")] == ["servicebus", "checkpoint"]
    assert len({suite.part for suite in SUITES}) == len(SUITES)


def test_an_unknown_suite_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(ValueError, match=r"kafka.*servicebus, administration, eventhub, checkpoint"):
        chosen_suites("kafka")


def test_tests_that_empty_the_namespace_run_alone() -> None:
    assert {suite.name: workers_of(suite, 12) for suite in SUITES} == {
        "servicebus": 12,
        "administration": 1,
        "eventhub": 12,
        "checkpoint": 12,
    }


def test_tests_that_a_caller_names_replace_those_of_the_suite_and_options_do_not() -> None:
    source = Source("package", chosen=("folder",), left_out=("slow",))
    assert pytest_arguments(source, workers=2, given=[]) == [
        "--ignore=slow",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "folder",
    ]
    assert pytest_arguments(source, workers=1, given=["-k", "peek"]) == ["--ignore=slow", "-k", "peek", "folder"]
    assert pytest_arguments(source, workers=1, given=["test_a.py::T"]) == ["--ignore=slow", "test_a.py::T"]


def test_tests_that_differ_only_by_an_identifier_are_told_apart() -> None:
    first, second = "f.py::t[0123456789abcdef]", "f.py::t[fedcba9876543210]"
    assert distinct_names([first, "f.py::u", second]) == [first, "f.py::u", f"{second} #2"]


# Tests that were run against other servers as well, where they failed for the same reasons.
NOT_WINNABLE = (
    "test_queues.py::TestServiceBusQueue::test_queue_operation_negative[pyamqp]",
    "async_tests/test_queues_async.py::TestServiceBusQueueAsync::test_async_queue_operation_negative[pyamqp]",
    "test_sessions.py::TestServiceBusSession::test_next_available_session_timeout_value[pyamqp]",
    "async_tests/test_sessions_async.py::TestServiceBusAsyncSession::test_async_next_available_session_timeout_value[a]",
    "test_message.py::TestServiceBusMessageBackcompat::test_message_property[pyamqp]",
    "unittests/test_pyamqp_decode.py::test_pyamqp_copies_are_byte_identical[_decode.py]",
)


def test_every_reason_explains_a_test_that_cannot_pass() -> None:
    reasons = read_reasons(REASONS)
    outcomes = list(explain({test: Outcome(test, (), Result.FAILED) for test in NOT_WINNABLE}, reasons))
    assert {outcome.result for outcome in outcomes} == {Result.EXPLAINED}
    assert reasons_no_longer_needed(outcomes, reasons) == []
    assert len(reasons) == len(NOT_WINNABLE)


# --- preparers --------------------------------------------------------------------------------------------------------

STAND_INS = Path(__file__).resolve().parents[3] / "conformance" / "amqp" / "stand_ins"


def _preparer(prefix: str, events: list[str], *, is_cached: bool) -> Any:
    from conformance.amqp.stand_ins.devtools_testutils import AzureMgmtPreparer

    class QueuePreparer(AzureMgmtPreparer):
        def create_resource(self, name: str, **_: Any) -> dict[str, Any]:
            events.append(f"created {name}")
            return {"queue": name, "unwanted": 1}

        def remove_resource(self, name: str, **_: Any) -> None:
            events.append(f"removed {name}")

    made = QueuePreparer(name_prefix=prefix)
    made.set_cache(is_cached)
    return made


def test_a_preparer_creates_an_entity_for_the_test_and_removes_it() -> None:
    events: list[str] = []

    def check(_: object, queue: str) -> str:
        events.append(f"used {queue}")
        return queue

    name = _preparer("fresh", events, is_cached=False)(check)(object())
    assert events == [f"created {name}", f"used {name}", f"removed {name}"]
    assert len(name) == 24


async def test_a_cached_entity_is_created_once_and_stays() -> None:
    events: list[str] = []

    async def check(_: object, *, queue: str) -> str:
        return queue

    prepared = _preparer("cached", events, is_cached=True)(check)
    assert await prepared(object()) == await prepared(object())
    assert len(events) == 1


def test_the_stand_ins_are_found_under_the_names_that_the_tests_import() -> None:
    names = ("devtools_testutils", "devtools_testutils/aio", "azure/mgmt/servicebus", "azure/mgmt/eventhub")
    assert [name for name in names if not (STAND_INS / name / "__init__.py").is_file()] == []
    # The parts of `azure` come from several folders: a module of that name would hide the others.
    assert not (STAND_INS / "azure" / "__init__.py").exists()
    assert "azure.mgmt.servicebus" not in sys.modules
