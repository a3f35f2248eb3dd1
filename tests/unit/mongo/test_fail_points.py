"""Fail points: when they apply, and the labels that tell drivers what to repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.error_labels import labels_of
from asterism.apis.mongo.fail_points import ConnectionClosed, FailPoints, InjectedFailure
from asterism.languages.mongo.failure import MongoFailure


@dataclass
class FakeCall:
    name: str = "insert"
    database: str = "shop"
    target: Any = "users"
    application: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    closes_connection: bool = False

    @property
    def command(self) -> Any:
        return SimpleNamespace(name=self.name)

    @property
    def connection(self) -> Any:
        return SimpleNamespace(application=self.application)


def call(**fields: Any) -> Call:
    return cast(Call, FakeCall(**fields))


async def failures(points: FailPoints, calls: list[Call]) -> list[bool]:
    failed = []
    for each in calls:
        try:
            await points.meet(each)
            failed.append(False)
        except MongoFailure:
            failed.append(True)
    return failed


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("off", [False, False, False]),
        ("alwaysOn", [True, True, True]),
        ({"times": 2}, [True, True, False]),
        ({"skip": 2}, [False, False, True]),
    ],
)
async def test_a_mode_says_how_often_a_fail_point_applies(mode: Any, expected: list[bool]) -> None:
    points = FailPoints()
    points.configure("failCommand", mode, {"failCommands": ["insert"], "errorCode": 11601})
    assert await failures(points, [call()] * 3) == expected


async def test_only_commands_that_are_meant_are_met_and_counted() -> None:
    points = FailPoints()
    data = {"failCommands": ["insert"], "errorCode": 1, "appName": "till", "namespace": "shop.users"}
    points.configure("failCommand", {"times": 1}, data)
    others = [call(name="find"), call(application="other"), call(application="till", target="orders")]
    assert await failures(points, others) == [False] * 3
    assert await failures(points, [call(application="till")] * 2) == [True, False]
    assert points.configure("failCommand", "off", None) == 1


async def test_a_fail_point_may_close_delay_or_label() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    points = FailPoints(sleep)
    data = {"failCommands": ["insert"], "blockConnection": True, "blockTimeMS": 500, "closeConnection": True}
    points.configure("failCommand", "alwaysOn", data)
    with pytest.raises(ConnectionClosed):
        await points.meet(call())
    assert slept == [0.5]
    points.configure("failCommand", "alwaysOn", {"failCommands": ["insert"], "errorCode": 91, "errorLabels": ["A"]})
    with pytest.raises(InjectedFailure) as failed:
        await points.meet(call())
    assert (failed.value.code, failed.value.only_labels) == (91, ("A",))
    concern = {"code": 91, "errmsg": "away"}
    points.configure("failCommand", "alwaysOn", {"failCommands": ["insert"], "writeConcernError": concern})
    interference = await points.meet(call())
    assert interference is not None
    assert interference.write_concern_error == concern


def test_a_write_can_be_failed_before_it_is_written_or_cut_off_behind_it() -> None:
    points = FailPoints()
    points.configure("onPrimaryTransactionalWrite", {"times": 1}, None)
    written = call()
    points.before_write(written)
    assert written.closes_connection
    data = {"closeConnection": False, "failBeforeCommitExceptionCode": 1}
    points.configure("onPrimaryTransactionalWrite", {"times": 1}, data)
    failed = call()
    with pytest.raises(MongoFailure):
        points.before_write(failed)
    assert not failed.closes_connection
    points.before_write(failed)


@pytest.mark.parametrize(
    ("name", "mode", "data", "code"),
    [("nothing", "off", None, 369), ("failCommand", "sometimes", None, 2), ("failCommand", "off", 1, 14)],
)
def test_what_cannot_be_configured_is_refused(name: str, mode: Any, data: Any, code: int) -> None:
    with pytest.raises(MongoFailure) as refused:
        FailPoints().configure(name, mode, data)
    assert refused.value.code == code


RETRY, TRANSIENT, NOTHING_WRITTEN = "RetryableWriteError", "TransientTransactionError", "NoWritesPerformed"


@pytest.mark.parametrize(
    ("code", "facts", "expected"),
    [
        (91, {"is_retryable_write": True}, [RETRY]),
        (91, {"is_retryable_write": True, "has_written": False}, [RETRY, NOTHING_WRITTEN]),
        (91, {}, []),
        (11000, {"is_retryable_write": True}, []),
        (112, {"is_retryable_write": True}, []),
        (112, {"is_in_transaction": True}, [TRANSIENT]),
        (91, {"is_in_transaction": True}, [TRANSIENT]),
        (91, {"is_in_transaction": True, "ends_transaction": True}, [RETRY]),
        (251, {"is_in_transaction": True, "ends_transaction": True}, [TRANSIENT]),
        (11000, {"is_in_transaction": True}, []),
        (None, {"is_retryable_write": True, "concern_code": 91}, [RETRY]),
        (None, {"is_retryable_write": True, "concern_code": 100}, []),
    ],
)
def test_labels_follow_from_the_code_and_the_kind_of_command(
    code: int | None, facts: dict[str, Any], expected: list[str]
) -> None:
    assert labels_of(code, **facts) == expected
