"""The namespace of a connection, and the words for errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from asterism.apis.amqp.errors import CONDITION_OF_FAILURE, SENTENCE_OF_FAILURE, status_of, words
from asterism.apis.amqp.host import MessagingHost
from asterism.apis.amqp.metering import NodeMeter
from asterism.errors import ResourceNotFound, StorageUnavailable
from asterism.metrics import DoorRequests
from asterism.models.messages.messages import Failure, MessagingRefused


@pytest.mark.parametrize(
    ("hostname", "namespace"),
    [
        (None, "asterism"),
        ("", "asterism"),
        ("localhost", "asterism"),
        ("127.0.0.1", "asterism"),
        ("[::1]", "asterism"),
        ("10.2.3.4", "asterism"),
        ("blue", "blue"),
        ("Blue.servicebus.windows.net", "blue"),
        ("blue.localhost:5672", "blue"),
        ("red.servicebus.windows.net", "asterism"),
    ],
)
def test_the_first_label_of_the_host_name_is_the_namespace(hostname: str | None, namespace: str) -> None:
    rules: Any = SimpleNamespace(is_namespace=lambda name: name in ("asterism", "blue", "10"))
    host = MessagingHost(
        cast("Any", None),
        cast("Any", None),
        rules,
        default_namespace="asterism",
        takes_directory_tokens=lambda _: False,
        meter=NodeMeter(DoorRequests(), lambda: 0.0),
    )
    assert host.namespace_of(hostname) == namespace


def test_every_failure_of_messages_has_a_condition_and_a_sentence() -> None:
    assert set(CONDITION_OF_FAILURE) == set(SENTENCE_OF_FAILURE) == set(Failure)


def test_errors_have_conditions_that_clients_know() -> None:
    lost = words(MessagingRefused(Failure.LOCK_LOST))
    assert (lost.condition, lost.description) == (
        "com.microsoft:message-lock-lost",
        SENTENCE_OF_FAILURE[Failure.LOCK_LOST],
    )
    assert words(ResourceNotFound(kind="queue", name="q")).condition == "amqp:not-found"
    assert words(StorageUnavailable(reason="no answer")).condition == "com.microsoft:server-busy"
    assert [status_of(condition) for condition in ("amqp:not-found", "com.microsoft:message-lock-lost", "?")] == [
        404,
        410,
        500,
    ]
