"""Azure Blob storage as one row of the table of doors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from asterism.apis.door_spec import CollectionKind, DoorSpec, Greeting, Introduction, PortSpec, Surroundings
from asterism.apis.settings import HOW, StartRefused, option
from asterism.apis.storage.settings import StorageSettings
from asterism.apis.storage.spec_texts import connection_string, warnings_about
from asterism.limits import MIB, limit

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor

# Stands for every account in the options below.
EVERY_ACCOUNT: Final = "*"
_RETENTION_DAYS: Final = range(1, 366)
_SOFT_DELETE_DAYS: Final = 7


def parse_retention(given: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Parse `ACCOUNT=DAYS`, or `DAYS` for all accounts."""
    parts = [text.rpartition("=") for text in given]
    return tuple((account or EVERY_ACCOUNT, _days(days)) for account, _, days in parts)


def parse_soft_delete(given: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Parse `ACCOUNT` or `ACCOUNT=DAYS`."""
    parts = [text.partition("=") for text in given]
    return tuple((account, _days(days) if equals else _SOFT_DELETE_DAYS) for account, equals, days in parts)


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3 or int(text) not in _RETENTION_DAYS:
        raise StartRefused(f"{text!r} is no time for which deleted data are kept: write 1 to 365 days")
    return int(text)


@dataclass(frozen=True, slots=True)
class BlobSettings(StorageSettings):
    versioned_accounts: tuple[str, ...] = option(
        (),
        "--blob-versioning",
        f"An account whose blobs keep their previous versions, or {EVERY_ACCOUNT} for all; may be repeated.",
        panel=HOW,
        metavar="ACCOUNT",
        is_repeatable=True,
        default_help="no account",
    )
    container_retention: tuple[tuple[str, int], ...] = option(
        (),
        "--container-retention",
        "For how many days an account keeps deleted containers, so that they can be restored; may be repeated.",
        panel=HOW,
        metavar="ACCOUNT=DAYS",
        is_repeatable=True,
        default_help="deleted containers are gone at once",
        parse=parse_retention,
    )
    soft_delete: tuple[tuple[str, int], ...] = option(
        (),
        "--blob-soft-delete",
        "An account that keeps deleted blobs for 7 days, or as many as named, unless its service properties name "
        "others; may be repeated.",
        panel=HOW,
        metavar="ACCOUNT[=DAYS]",
        is_repeatable=True,
        default_help="deleted blobs are gone at once",
        parse=parse_soft_delete,
    )
    immutable_accounts: tuple[str, ...] = option(
        (),
        "--blob-immutability",
        f"An account whose new containers let blobs have immutability policies and legal holds, or {EVERY_ACCOUNT} for "
        "all; may be repeated.",
        panel=HOW,
        metavar="ACCOUNT",
        is_repeatable=True,
        default_help="no account",
    )
    # A list of 50,000 blocks with ids of 64 bytes has 5 MB.
    blob_request_bytes_max: int = limit(
        8 * MIB, "The largest list, batch or set of properties that the port for blobs reads; data have other limits."
    )
    blob_upload_bytes_max: int = limit(5_000 * MIB, "The largest blob that one request writes, piece by piece.")
    blob_block_bytes_max: int = limit(4_000 * MIB, "The largest block of a block blob.")
    blob_append_bytes_max: int = limit(100 * MIB, "The largest block that is appended to a blob in one request.")

    def is_versioned(self, account: str) -> bool:
        return account in self.versioned_accounts or EVERY_ACCOUNT in self.versioned_accounts

    def is_immutable(self, account: str) -> bool:
        return account in self.immutable_accounts or EVERY_ACCOUNT in self.immutable_accounts

    def container_retention_days(self, account: str) -> int | None:
        return _of_account(self.container_retention, account)

    def soft_delete_days(self, account: str) -> int | None:
        return _of_account(self.soft_delete, account)


def _of_account(days: Sequence[tuple[str, int]], account: str) -> int | None:
    by_account = dict(days)
    return by_account.get(account, by_account.get(EVERY_ACCOUNT))


def _build(services: DoorServices, settings: BlobSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.blob.door import make_door

    return {"blob": make_door(services, settings)}


def _connection_strings(settings: BlobSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    account = next(iter(settings.accounts.values()))
    return {"blob": connection_string(account, {"Blob": server.endpoints["blob"]}, with_secrets=with_secrets)}


def _greeting(settings: BlobSettings, server: Surroundings) -> Greeting:
    account = next(iter(settings.accounts))
    return Greeting([("Blobs", f"{server.endpoints['blob'].url}{account}")], warnings_about(settings, server))


def _introduce(_: BlobSettings, server: Surroundings, account: str, key: str) -> Introduction:
    from asterism.apis.blob.introduction import introduce

    return introduce(server, account, key)


SPEC = DoorSpec(
    name="blob",
    help="Azure Blob storage",
    ports=(
        # Azurite's, where clients look with `UseDevelopmentStorage=true`.
        PortSpec(
            "blob",
            "--blob-port",
            10000,
            "Port for Azure Blob storage; 0 for any.",
            request_limit="blob_request_bytes_max",
            streamed_request_limit="blob_upload_bytes_max",
        ),
    ),
    settings=BlobSettings,
    accounts=("storage",),
    modules=("asterism.apis.blob.door",),
    build=_build,
    greeting=_greeting,
    introduce=_introduce,
    connection_strings=_connection_strings,
    collections=(
        CollectionKind(
            "container of blobs",
            "containers of blobs",
            owns=lambda settings: "container" in settings and "state" in settings,
            explorer=None,
            name_property="container",
            is_in_database=False,
            parameter="blob",
        ),
    ),
    account_keys=lambda settings: settings.first_keys(),
)
