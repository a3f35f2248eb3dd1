"""Frames and loads of the benchmark for AMQP, beside the door's own codec and the bare server."""

from __future__ import annotations

import asyncio
import base64
import hmac
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.amqp.engine.transfer_codec import (
    decode_disposition,
    decode_transfer,
    encode_disposition,
    encode_transfer,
)
from asterism.storage.contract import Fence
from asterism.storage.lmdb import LmdbEngine
from asterism.values.amqp.message import Message, batch_parts
from benchmarks import amqp_frames, bare_amqp
from benchmarks.amqp_figures import BATCH, BATCH_TEMPLATE, MESSAGE, TEMPLATE
from benchmarks.amqp_frames import BODY_AT, TransferTemplate, split_frames
from benchmarks.amqp_servers import KEY, description, put_request, shared_access_signature
from benchmarks.amqp_wire import Login, open_receiver, open_sender
from benchmarks.bare_amqp import EPOCH, PARTITION, Connection, Server
from benchmarks.peer_rabbitmq import environment_of
from benchmarks.wire import UnexpectedAnswer

ids = st.integers(0, 2**32 - 2)


@given(first=ids, payload=st.binary(max_size=300), message_format=st.sampled_from([0, amqp_frames.BATCH_FORMAT]))
def test_the_door_reads_the_transfers_of_a_load(first: int, payload: bytes, message_format: int) -> None:
    data = TransferTemplate(payload, message_format=message_format).frames(first, 2)
    frames, rest = split_frames(data)
    read = [decode_transfer(data[start + BODY_AT : end]) for start, end in frames]
    assert rest == len(data)
    assert [transfer.delivery_id for transfer in read] == [first, first + 1]
    assert {(transfer.format, transfer.payload, transfer.is_settled) for transfer in read} == {
        (message_format, payload, False)
    }
    assert read[0].tag != read[1].tag


@given(numbers=st.lists(ids, max_size=5))
def test_the_door_reads_the_acceptances_of_a_load(numbers: list[int]) -> None:
    data = amqp_frames.acceptances(numbers)
    read = [decode_disposition(data[start + BODY_AT : end]) for start, end in split_frames(data)[0]]
    assert [(disposition.first, disposition.last) for disposition in read] == [(number, number) for number in numbers]
    assert all(disposition.is_from_receiver and not disposition.is_settled for disposition in read)


@given(delivery_id=ids, tag=st.binary(max_size=16), payload=st.binary(max_size=300))
def test_a_load_reads_the_transfers_of_the_door(delivery_id: int, tag: bytes, payload: bytes) -> None:
    data = encode_transfer(0, 0, delivery_id=delivery_id, tag=tag, is_settled=False, has_more=False, payload=payload)
    assert split_frames(data) == ([(0, len(data))], len(data))
    assert amqp_frames.transfer_id(data, 0) == delivery_id


@given(first=ids, last=ids, is_from_receiver=st.booleans())
def test_a_load_reads_the_dispositions_of_the_door(first: int, last: int, is_from_receiver: bool) -> None:
    accepted = bytes((0, 0x53, amqp_frames.ACCEPTED, 0x45))
    data = encode_disposition(0, is_from_receiver=is_from_receiver, first=first, last=last, state=accepted)
    assert amqp_frames.disposition_range(data, 0, len(data)) == (first, last, True)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (b"\x41\x43\x40\x41\x00\x53\x24\x45\x40", (0, 0, True)),
        (b"\x41\x52\x07\x40\x41\x00\x53\x24\x45\x40", (7, 7, True)),
        (b"\x56\x01\x52\x07\x52\x09\x41\x00\x53\x24\x45\x40", (7, 9, True)),
        (b"\x41\x52\x07\x52\x09\x41\x00\x53\x26\x45\x40", (7, 9, False)),
    ],
)
def test_a_load_reads_dispositions_of_every_form(fields: bytes, found: tuple[int, int, bool]) -> None:
    head = b"\x02\x00\x00\x00\x00\x53\x15\xc0" + bytes((1 + len(fields), 6))
    data = (4 + len(head) + len(fields)).to_bytes(4, "big") + head + fields
    assert amqp_frames.disposition_range(data, 0, len(data)) == found


@given(payloads=st.lists(st.binary(max_size=40), max_size=5), cut=st.integers(0, 300))
def test_frames_that_are_cut_wait_for_their_rest(payloads: list[bytes], cut: int) -> None:
    frames = [amqp_frames.frame(amqp_frames.TRANSFER, [], payload=payload) for payload in payloads]
    joined = b"".join(frames)
    first, rest = split_frames(joined[:cut])
    second, _ = split_frames(joined[rest:])
    found = [joined[start:end] for start, end in first] + [joined[rest:][start:end] for start, end in second]
    assert found == frames


def test_messages_of_the_load_have_a_body_of_1_kb_and_an_id() -> None:
    message = Message.parse(MESSAGE)
    assert len(message.body) == 1024
    assert message.header.durable
    assert len(message.properties.message_id) == 32


def test_a_batch_of_the_load_has_its_messages_in_sections_of_data() -> None:
    data = BATCH_TEMPLATE.frames(0, 1)
    transfer = decode_transfer(data[BODY_AT:])
    assert transfer.format == amqp_frames.BATCH_FORMAT
    assert BATCH_TEMPLATE.size <= bare_amqp.FRAME_BYTES_MAX
    assert batch_parts(transfer.payload)[1] == [MESSAGE] * BATCH


def test_the_signature_of_the_administration_is_over_the_resource_and_its_end() -> None:
    kind, _, fields = shared_access_signature("http://localhost/", expires=99).partition(" ")
    parts = {name: value for name, (value,) in parse_qs(fields).items()}
    digest = hmac.digest(KEY.encode(), b"http%3A%2F%2Flocalhost%2F\n99", "sha256")
    assert kind == "SharedAccessSignature"
    assert parts == {
        "sr": "http://localhost/",
        "sig": base64.b64encode(digest).decode(),
        "se": "99",
        "skn": "RootManageSharedAccessKey",
    }


def test_a_description_of_an_entity_is_xml_with_its_properties() -> None:
    body = description("Queue", [("LockDuration", "PT5M")])
    request = put_request("/q", body, content_type="application/atom+xml", now_wall_seconds=0.0)
    head, _, content = request.partition(b"\r\n\r\n")
    assert f"content-length: {len(content)}".encode() in head
    assert [element.text for element in ElementTree.fromstring(content).iter() if element.text] == ["PT5M"]


def test_the_peer_keeps_all_of_its_files_in_the_folder_of_the_run(tmp_path: Path) -> None:
    environment = environment_of(tmp_path, port=1, node_port=2, names_port=3)
    kept = [value for name, value in environment.items() if name.startswith("RABBITMQ_") and "/" in value]
    assert len(kept) >= 7
    assert all(Path(value).is_relative_to(tmp_path) for value in kept)


# --- loads on the bare server -----------------------------------------------------------------------------------------


@pytest.fixture
async def bare_port() -> AsyncIterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        engine = LmdbEngine.open(folder, durable=False)
        await engine.create_partition(PARTITION, Fence(EPOCH))
        server = Server(engine)
        listener = await asyncio.get_running_loop().create_server(lambda: Connection(server), "127.0.0.1", 0)
        yield listener.sockets[0].getsockname()[1]
        listener.close()
        await engine.close()


LOGIN = Login("user", "password")


@pytest.mark.parametrize("window", [1, 7, 100])
async def test_a_load_sends_receives_and_completes_as_many_as_it_is_to(bare_port: int, window: int) -> None:
    sender = await open_sender(bare_port, "queue", LOGIN)
    receiver = await open_receiver(bare_port, "queue", LOGIN)
    remover = await open_receiver(bare_port, "queue", LOGIN, deletes=True)
    await sender.send(TEMPLATE, 300, window=window)
    await receiver.receive(100, window=window)
    assert len(receiver.unsettled) == 100
    await receiver.complete(window=window)
    assert receiver.unsettled == []
    await receiver.receive_and_complete(100, window=window)
    await remover.receive(100, window=window)
    assert remover.unsettled == []
    # Another load on the same links.
    await sender.send(TEMPLATE, 50, window=window)
    await receiver.receive_and_complete(50, window=window)
    for link in (sender, receiver, remover):
        await link.close()


async def test_a_load_whose_server_goes_away_fails(bare_port: int) -> None:
    receiver = await open_receiver(bare_port, "queue", LOGIN)
    load = asyncio.ensure_future(receiver.receive(1, window=1))
    await asyncio.sleep(0)
    receiver.connection_lost(None)
    with pytest.raises(UnexpectedAnswer, match="closed the connection"):
        await load
