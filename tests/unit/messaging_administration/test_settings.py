"""The settings of messaging, as an operator gives them."""

from __future__ import annotations

import pytest

from asterism.apis.amqp.accounts import NamespaceAccount, NamespaceAccounts, parse_namespaces
from asterism.apis.amqp.settings import MessagingSettings
from asterism.apis.settings import StartRefused
from asterism.keyspaces.catalog.accounts import AccountRecord


def test_without_options_there_is_the_namespace_of_the_emulators() -> None:
    settings = MessagingSettings()
    (account,) = settings.namespaces.values()
    assert (account.name, account.keys, account.is_public) == ("asterism", ("SAS_KEY_VALUE",), True)
    assert not settings.has_own_namespaces
    assert settings.first_keys() == {"asterism": b"SAS_KEY_VALUE"}


def test_namespaces_have_one_key_or_two() -> None:
    settings = MessagingSettings(given_namespaces=parse_namespaces(["orders:first;second", "other:a:b="]))
    assert list(settings.namespaces) == ["orders", "other"]
    assert [account.keys for account in settings.namespaces.values()] == [("first", "second"), ("a:b=",)]
    assert not settings.namespaces["orders"].is_public
    assert "first" not in repr(settings)


@pytest.mark.parametrize(
    "given", [["orders"], ["Orders:k"], ["a_b:k"], [":k"], ["orders:"], ["orders:a;"], ["a:k", "a:l"]]
)
def test_a_namespace_that_cannot_be_used_refuses_the_start(given: list[str]) -> None:
    with pytest.raises(StartRefused, match=r"^(a|the) namespace "):
        parse_namespaces(given)


def test_limits_reach_hubs_and_messages() -> None:
    settings = MessagingSettings(
        hub_partitions_max=7, hub_event_bytes_max=2000, hub_throughput_units=3, bus_receivers_max=8
    )
    limits = settings.hub_limits()
    assert (limits.partitions_max, limits.message_bytes_max, limits.throughput_units) == (7, 2000, 3)
    assert settings.bus_limits().receivers_per_entity_max == 8


class Records:
    """Accounts of the catalog, which a test changes."""

    def __init__(self) -> None:
        self.records: dict[str, AccountRecord] = {}
        self.listeners: list[object] = []

    def find(self, name: str) -> AccountRecord | None:
        return self.records.get(name)

    def of_kind(self, kind: str) -> list[AccountRecord]:
        return [record for record in self.records.values() if record.kind == kind]

    def put(self, name: str, kind: str) -> None:
        self.records[name] = AccountRecord(name, kind, "cHJpbWFyeQ==", "c2Vjb25kYXJ5", "Session", 0)
        self.listeners[0](name)  # type: ignore[operator]  # a function

    def remove(self, name: str) -> None:
        del self.records[name]
        self.listeners[0](name)  # type: ignore[operator]  # a function


def test_accounts_of_the_catalog_are_namespaces_with_their_keys_as_texts() -> None:
    records = Records()
    accounts = NamespaceAccounts({"asterism": NamespaceAccount("asterism", ("k",))}, records)  # type: ignore[arg-type]
    records.put("blue", "messaging")
    records.put("green", "storage")
    records.put("asterism", "messaging")
    assert accounts.keys_of("blue") == ("cHJpbWFyeQ==", "c2Vjb25kYXJ5")
    assert accounts.keys_of("green") is None
    assert accounts.keys_of("asterism") == ("k",)
    assert (accounts.default, accounts.is_public("blue"), accounts.is_public("nowhere")) == ("asterism", False, False)
    records.remove("blue")
    assert accounts.keys_of("blue") is None
