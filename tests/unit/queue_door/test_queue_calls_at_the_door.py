"""Calls on queues and messages at the door, without a socket: statuses, headers, bodies and codes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.apis.queue.errors import FAILURES
from asterism.apis.queue.message_xml import BODY_BYTES_MAX, TEXT_BYTES_MAX, read_text, write_taken
from asterism.apis.queue.routes import ROUTES
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.xml_text import document, text_leaf
from asterism.models.queues.layout import NEVER, MessageState
from asterism.models.queues.messages import Message, MessageFailure
from tests.support.queues import SECOND
from tests.unit.queue_door.queue_door_at_hand import HOST, QueueDoorAtHand, Reply, open_door

WEEK = 7 * 24 * 3600


def run(test: Callable[[QueueDoorAtHand], Awaitable[None]]) -> None:
    async def go() -> None:
        async with open_door() as door:
            assert (await door.send("PUT", "jobs")).status == 201
            await test(door)

    asyncio.run(go())


def message_body(text: str) -> bytes:
    return document(f"<QueueMessage>{text_leaf('MessageText', text)}</QueueMessage>")


def values(reply: Reply, name: str) -> list[str]:
    return [element.text or "" for element in reply.xml.iter(name)]


# --- queues -----------------------------------------------------------------------------------------------------------


def test_creating_a_queue_again_depends_on_its_metadata() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        metadata = {"x-ms-meta-a": "1"}
        assert (await door.send("PUT", "other", headers=metadata)).status == 201
        assert (await door.send("PUT", "other", headers=metadata)).status == 204
        refused = await door.send("PUT", "other")
        assert (refused.status, refused.code) == (409, "QueueAlreadyExists")

    run(test)


def test_a_listing_has_its_parameters_and_a_marker() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        for number in range(5):
            await door.send("PUT", f"list{number}", headers={"x-ms-meta-place": f"<{number}>"})
        first = await door.send("GET", "?comp=list&prefix=list&maxresults=2&include=metadata")
        assert first.xml.attrib["ServiceEndpoint"] == f"http://{HOST}/devstoreaccount1/"
        assert values(first, "Name") == ["list0", "list1"]
        assert values(first, "place") == ["<0>", "<1>"]
        assert (values(first, "Prefix"), values(first, "MaxResults")) == (["list"], ["2"])
        (marker,) = values(first, "NextMarker")
        rest = await door.send("GET", f"?comp=list&prefix=list&marker={marker}")
        assert values(rest, "Name") == ["list2", "list3", "list4"]
        assert values(rest, "NextMarker") == [""]
        assert not values(rest, "place")
        odd = await door.send("GET", "?comp=list&prefix=%01&marker=%EF%BF%BE")
        assert (values(odd, "Prefix"), values(odd, "Marker")) == (["?"], ["?"])
        refused = await door.send("GET", "?comp=list&maxresults=0")
        assert (refused.status, refused.code) == (400, "OutOfRangeQueryParameterValue")

    run(test)


def test_metadata_come_with_the_count() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        assert (await door.send("PUT", "jobs?comp=metadata", headers={"x-ms-meta-a": "b"})).status == 204
        await door.send("POST", "jobs/messages", message_body("x"))
        for method in ("GET", "HEAD"):
            found = await door.send(method, "jobs?Comp=Metadata")
            assert found.status == 200
            assert found.headers["x-ms-approximate-messages-count"] == "1"
            assert found.headers["x-ms-meta-a"] == "b"

    run(test)


def test_policies_are_stored_and_cleared() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        body = (
            b"<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>"
            b"</SignedIdentifier><SignedIdentifier><Id>two</Id></SignedIdentifier></SignedIdentifiers>"
        )
        assert (await door.send("PUT", "jobs?comp=acl", body)).status == 204
        found = await door.send("GET", "jobs?comp=acl")
        assert (values(found, "Id"), values(found, "Permission")) == (["one", "two"], ["r"])
        assert (await door.send("PUT", "jobs?comp=acl")).status == 204
        assert not values(await door.send("GET", "jobs?comp=acl"), "Id")

    run(test)


# --- messages ---------------------------------------------------------------------------------------------------------


def test_the_life_of_a_message_in_the_words_of_the_protocol() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        put = await door.send("POST", "jobs/messages?messagettl=-1", message_body("text"))
        assert put.status == 201
        assert values(put, "ExpirationTime") == ["Fri, 31 Dec 9999 23:59:59 GMT"]
        assert not values(put, "MessageText")
        peeked = await door.send("GET", "jobs/messages?peekonly=true")
        assert (values(peeked, "MessageText"), values(peeked, "DequeueCount")) == (["text"], ["0"])
        assert not values(peeked, "PopReceipt")
        taken = await door.send("GET", "jobs/messages?visibilitytimeout=10")
        (message_id,), (receipt,) = values(taken, "MessageId"), values(taken, "PopReceipt")
        assert [element.tag for element in taken.xml[0]] == [
            "MessageId",
            "InsertionTime",
            "ExpirationTime",
            "PopReceipt",
            "TimeNextVisible",
            "DequeueCount",
            "MessageText",
        ]
        again = await door.send("GET", "jobs/messages")
        assert (again.status, len(again.xml)) == (200, 0)
        place = f"jobs/messages/{message_id}?popreceipt={receipt.replace('=', '%3D').replace('+', '%2B')}"
        updated = await door.send("PUT", f"{place}&visibilitytimeout=0")
        assert updated.status == 204
        assert updated.headers["x-ms-time-next-visible"].endswith("GMT")
        outdated = await door.send("DELETE", place)
        assert (outdated.status, outdated.code) == (400, "PopReceiptMismatch")
        door.world.moment.ticks += 1
        (text,) = values(await door.send("GET", "jobs/messages"), "MessageText")
        assert text == "text"
        assert (await door.send("DELETE", "jobs/messages")).status == 204
        gone = await door.send("DELETE", place)
        assert (gone.status, gone.code) == (404, "MessageNotFound")

    run(test)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "jobs/messages?messagettl=0", "OutOfRangeQueryParameterValue"),
        ("POST", "jobs/messages?messagettl=-2", "OutOfRangeQueryParameterValue"),
        ("POST", "jobs/messages?messagettl=2147483648", "OutOfRangeQueryParameterValue"),
        ("POST", "jobs/messages?messagettl=x", "InvalidQueryParameterValue"),
        ("POST", f"jobs/messages?visibilitytimeout={WEEK + 1}", "OutOfRangeQueryParameterValue"),
        ("POST", "jobs/messages?visibilitytimeout=5&messagettl=5", "OutOfRangeQueryParameterValue"),
        ("POST", "none/messages", "QueueNotFound"),
        ("GET", "jobs/messages?numofmessages=0", "OutOfRangeQueryParameterValue"),
        ("GET", "jobs/messages?numofmessages=33", "OutOfRangeQueryParameterValue"),
        ("GET", "jobs/messages?visibilitytimeout=0", "OutOfRangeQueryParameterValue"),
        ("GET", "jobs/messages?peekonly=perhaps", "InvalidQueryParameterValue"),
        ("GET", "jobs/messages?peekonly=true&numofmessages=33", "OutOfRangeQueryParameterValue"),
        ("GET", "none/messages", "QueueNotFound"),
        ("PUT", "jobs/messages/00000000-0000-0000-0000-000000000000", "MissingRequiredQueryParameter"),
        (
            "PUT",
            "jobs/messages/00000000-0000-0000-0000-000000000000?popreceipt=AAAAAAAAAAAAAAAAAAAAAA%3D%3D",
            "MissingRequiredQueryParameter",
        ),
        ("GET", "jobs/other", "InvalidUri"),
        ("GET", "jobs/messages/x/y", "InvalidUri"),
        ("GET", "jobs?comp=other", "InvalidQueryParameterValue"),
        ("GET", "?comp=other", "InvalidQueryParameterValue"),
        ("GET", "Jobs?comp=metadata", "InvalidResourceName"),
        ("PATCH", "jobs", "UnsupportedHttpVerb"),
    ],
)
def test_a_call_that_cannot_be_is_refused_with_the_code_of_the_service(method: str, path: str, code: str) -> None:
    async def test(door: QueueDoorAtHand) -> None:
        refused = await door.send(method, path, message_body("x") if method == "POST" else b"")
        assert refused.code == code
        assert 400 <= refused.status < 500

    run(test)


def test_the_secondary_location_gives_no_messages_away() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        await door.send("POST", "jobs/messages", message_body("x"))
        assert values(await door.send("GET", "jobs/messages?peekonly=true", secondary=True), "MessageText") == ["x"]
        twice = await door.send("GET", "devstoreaccount1/jobs/messages?peekonly=true", secondary=True)
        assert values(twice, "MessageText") == ["x"]
        for method, path in (("GET", "jobs/messages"), ("DELETE", "jobs/messages"), ("PUT", "others")):
            refused = await door.send(method, path, secondary=True)
            assert (refused.status, refused.code) == (403, "InsufficientAccountPermissions")

    run(test)


def test_a_message_that_would_be_visible_only_after_its_life_cannot_be_made_so() -> None:
    async def test(door: QueueDoorAtHand) -> None:
        put = await door.send("POST", "jobs/messages?messagettl=5", message_body("x"))
        (message_id,), (receipt,) = values(put, "MessageId"), values(put, "PopReceipt")
        escaped = receipt.replace("=", "%3D").replace("+", "%2B").replace("/", "%2F")
        refused = await door.send("PUT", f"jobs/messages/{message_id}?popreceipt={escaped}&visibilitytimeout=5")
        assert (refused.status, refused.code) == (400, "OutOfRangeQueryParameterValue")

    run(test)


# --- tables and codecs ------------------------------------------------------------------------------------------------


def test_every_failure_of_a_message_has_a_refusal() -> None:
    assert set(FAILURES) == set(MessageFailure)


def test_every_route_is_there_once() -> None:
    keys = [(route.key, route.header) for route in ROUTES]
    assert len(keys) == len(set(keys))


legal = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[*map(chr, range(32)), "\ufffe", "\uffff"])
    | st.sampled_from("\r\n\t<>&'\"]"),
    max_size=60,
)


@settings(deadline=None)
@given(legal)
def test_any_text_that_xml_can_hold_is_read_as_it_was_written(text: str) -> None:
    assert read_text(message_body(text)) == text.encode()
    # As the official client writes it: with carriage returns as they are.
    bare = message_body(text).replace(b"&#13;", b"\r")
    assert read_text(bare) == text.encode()


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_that_are_stored_can_be_answered(stored: bytes) -> None:
    state = MessageState(SECOND, NEVER, 1, len(stored))
    body = document(write_taken([Message(bytes(16), bytes(8), SECOND, state, stored)]))
    assert Reply(200, {}, body).xml[0][-1].tag == "MessageText"


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for sent in (body, b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % body):
        assert code_of_reading(sent) in ("", "InvalidXmlDocument")


def code_of_reading(body: bytes) -> str:
    try:
        read_text(body)
    except Refusal as refusal:
        return refusal.code
    return ""


@pytest.mark.parametrize("opening", [b"<MessageText>", b"<MessageText "])
def test_a_body_of_many_openings_is_refused_after_one_look(opening: bytes) -> None:
    # It took minutes of one core when each opening was searched to the end of the body.
    body = (b"\r" + opening * BODY_BYTES_MAX)[:BODY_BYTES_MAX]
    with pytest.raises(Refusal):
        read_text(body)


def test_a_text_is_refused_at_the_first_byte_too_many() -> None:
    assert read_text(message_body("x" * TEXT_BYTES_MAX)) == b"x" * TEXT_BYTES_MAX
    with pytest.raises(Refusal) as refused:
        read_text(message_body("x" * TEXT_BYTES_MAX + "x"))
    assert (refused.value.status, refused.value.fields) == (413, (("MaxLimit", "65536"),))
