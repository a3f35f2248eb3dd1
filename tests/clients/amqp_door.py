"""A server of messaging that is sent everything but what it should be, and the clients that look after it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asterism.apis.amqp.engine.frame_codec import AMQP_HEADER, SASL_FRAME, SASL_HEADER
from asterism.apis.amqp.engine.performatives import Performative, encode_performative
from asterism.values.amqp.message import (
    BATCH_FORMAT,
    encode_application_properties,
    encode_data_body,
    encode_value_body,
)
from asterism.values.amqp.types import Described, Int, Symbol, UInt, ULong
from tests.clients.amqp_raw import (
    ACCEPTED,
    RawClient,
    message_of,
    token_for,
)
from tests.clients.messaging_server import KEY, KEY_NAME, MessagingServer
from tests.support.server import WAIT_SECONDS_MAX, RunningServer, running_server


@contextmanager
def serving(data: Path, *options: str) -> Iterator[MessagingServer]:
    """A server with a queue, a queue with sessions, a topic and a hub; nothing that it is sent makes it fail."""
    with running_server(data, *options, doors=("amqp",)) as running:
        made = MessagingServer(running)
        with made.administration() as administration:
            administration.create_queue("queue", lock_duration="PT5M", max_delivery_count=2000)
            administration.create_queue("sessions", requires_session=True)
            administration.create_queue("parts", enable_partitioning=True)
            administration.create_topic("topic")
            administration.create_subscription("topic", "sub")
        properties = {"partitionCount": 2, "messageRetentionInDays": 1}
        assert arm(running, "PUT", "Microsoft.EventHub", "eventhubs/hub", properties)[0] in (200, 201)
        yield made
        status, log = running.end()
        assert (status, "Traceback" in log) == (0, False), log


def arm(
    server: RunningServer, method: str, provider: str, path: str, properties: dict[str, Any] | None = None
) -> tuple[int, Any]:
    """Send a request of the resource manager's form."""
    connection = http.client.HTTPConnection("localhost", server.ports["messaging"], timeout=WAIT_SECONDS_MAX)
    try:
        address = f"/subscriptions/s/resourceGroups/g/providers/{provider}/namespaces/asterism/{path}"
        body = None if properties is None else json.dumps({"properties": properties})
        headers = {"authorization": token_for(""), "content-type": "application/json"}
        connection.request(method, f"{address}?api-version=2022-10-01", body, headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()


@contextmanager
def signed_in(door: MessagingServer) -> Iterator[RawClient]:
    """A connection with a session, and a token for everything."""
    with RawClient(door.amqp_port) as client:
        client.open()
        assert client.put_token("") == 202
        yield client


def goes_on(door: MessagingServer) -> bool:
    """Return whether a client that makes no mistakes is served."""
    with RawClient(door.amqp_port) as client:
        client.open()
        client.put_token("")
        assert client.attach(0, "queue", is_receiver=False) is None
        return client.deliver(0, message_of(b"good")) == ACCEPTED


def attach_bytes(handle: int, address: str, *, is_receiver: bool) -> bytes:
    termini = [Described(ULong(0x28), [address]), Described(ULong(0x29), [address])]
    fields = [f"link {handle}", UInt(handle), is_receiver, None, None, *termini, None, None, UInt(0)]
    return encode_performative(0, Performative.ATTACH, fields)


def transfer_bytes(handle: int, number: int, payload: bytes, *, message_format: int = 0) -> bytes:
    fields = [UInt(handle), UInt(number), number.to_bytes(4, "big"), UInt(message_format), False, False]
    return encode_performative(0, Performative.TRANSFER, fields, payload=payload)


def conversation() -> bytes:
    """Return everything that a client sends which logs in with a key, sends, receives, settles and manages."""
    response = f"\0{KEY_NAME}\0{KEY}".encode()
    session = [UInt(0), UInt(100), UInt(0), UInt(100)]
    peek = encode_application_properties({"operation": "com.microsoft:peek-message"})
    peek += encode_value_body({"from-sequence-number": 0, "message-count": Int(1)})
    selector = Described(Symbol("apache.org:selector-filter:string"), "amqp.annotation.x-opt-offset > '-1'")
    source = [
        "hub/ConsumerGroups/$Default/Partitions/0",
        *[None] * 6,
        {Symbol("apache.org:selector-filter:string"): selector},
    ]
    hub = ["events", UInt(4), True, None, None, Described(ULong(0x28), source), Described(ULong(0x29), ["here"])]
    batch = encode_data_body(message_of(b"x")) + encode_data_body(message_of(b"y"))
    return b"".join(
        (
            SASL_HEADER,
            encode_performative(0, Performative.SASL_INIT, [Symbol("PLAIN"), response, "localhost"], kind=SASL_FRAME),
            AMQP_HEADER,
            encode_performative(0, Performative.OPEN, ["client", "localhost", UInt(65_536)]),
            encode_performative(0, Performative.BEGIN, [None, UInt(0), UInt(100), UInt(100)]),
            attach_bytes(0, "queue", is_receiver=False),
            attach_bytes(1, "queue", is_receiver=True),
            attach_bytes(2, "queue/$management", is_receiver=False),
            attach_bytes(3, "queue/$management", is_receiver=True),
            encode_performative(0, Performative.ATTACH, [*hub, None, None, UInt(0)]),
            attach_bytes(5, "hub", is_receiver=False),
            encode_performative(0, Performative.FLOW, [*session, UInt(1), UInt(0), UInt(10)]),
            encode_performative(0, Performative.FLOW, [*session, UInt(3), UInt(0), UInt(10)]),
            encode_performative(0, Performative.FLOW, [*session, UInt(4), UInt(0), UInt(10)]),
            transfer_bytes(0, 0, message_of(b"body", message_id="m", group_id="g")),
            transfer_bytes(0, 1, batch, message_format=BATCH_FORMAT),
            transfer_bytes(2, 2, peek),
            transfer_bytes(5, 3, batch, message_format=BATCH_FORMAT),
            encode_performative(0, Performative.DISPOSITION, [True, UInt(0), UInt(9), True, ACCEPTED]),
            encode_performative(0, Performative.DETACH, [UInt(0), True]),
            encode_performative(0, Performative.END, []),
            encode_performative(0, Performative.CLOSE, []),
        )
    )


CONVERSATION = conversation()
