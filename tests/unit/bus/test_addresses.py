"""Addresses of the bus, as clients of several languages spell them."""

from __future__ import annotations

import pytest

from asterism.apis.amqp.bus.addresses import BusAddress, is_management, managed_path, parse_address
from asterism.models.messages.messages import SubQueue

NAMES = {"orders", "a/b", "topic", "odd/subscriptions/name", "end/$deadletterqueue"}


def parse(address: str) -> BusAddress:
    return parse_address(address, lambda name: name.lower() in NAMES)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("orders", BusAddress("orders")),
        ("/Orders/", BusAddress("Orders")),
        ("orders/$DeadLetterQueue", BusAddress("orders", None, SubQueue.DEAD_LETTER)),
        ("orders/$deadletterqueue", BusAddress("orders", None, SubQueue.DEAD_LETTER)),
        ("orders/$Transfer/$DeadLetterQueue", BusAddress("orders", None, SubQueue.TRANSFER_DEAD_LETTER)),
        ("topic/Subscriptions/s", BusAddress("topic", "s")),
        ("topic/subscriptions/s/$DeadLetterQueue", BusAddress("topic", "s", SubQueue.DEAD_LETTER)),
        ("a/b", BusAddress("a/b")),
        ("odd/subscriptions/name", BusAddress("odd/subscriptions/name")),
        ("odd/subscriptions/name/Subscriptions/s", BusAddress("odd/subscriptions/name", "s")),
        ("end/$deadletterqueue", BusAddress("end/$deadletterqueue")),
        ("missing/Subscriptions/s", BusAddress("missing", "s")),
        ("missing", BusAddress("missing")),
    ],
)
def test_an_address_names_an_entity_a_subscription_and_a_sub_queue(address: str, expected: BusAddress) -> None:
    assert parse(address) == expected


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("$management", ""),
        ("orders/$management", "orders"),
        ("orders/$DeadLetterQueue/$Management", "orders/$DeadLetterQueue"),
        ("topic/Subscriptions/s/$management", "topic/Subscriptions/s"),
    ],
)
def test_requests_are_about_the_path_in_front(address: str, path: str) -> None:
    assert is_management(address)
    assert managed_path(address) == path


def test_an_entity_is_no_node_of_requests() -> None:
    assert not is_management("orders")
    assert not is_management("orders$management")
