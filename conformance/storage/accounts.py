"""The storage accounts that the clients' tests ask for, and the settings that each of them has in the product."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """An argument of the tests, `<name>account_name`, and the options of the port for blobs for such an account."""

    name: str
    suffix: str
    options: tuple[str, ...] = ()


# Its retention is a property of its service, which the plugin sets.
SOFT_DELETE = "soft_delete_storage_"
ROLES = (
    Role("storage_", ""),
    # The source of copies from another account.
    Role("secondary_storage_", "second"),
    Role("blob_storage_", "blobs"),
    Role("versioned_storage_", "versioned", ("--blob-versioning",)),
    Role("premium_storage_", "premium"),
    Role(SOFT_DELETE, "softdelete"),
)


@dataclass(frozen=True)
class Account:
    role: Role
    name: str
    key: str


def account_of(role: Role, worker: int) -> Account:
    """Each worker has accounts of its own: names of containers come from names of tests, and tests list them all."""
    name = f"asterism{worker}{role.suffix}"
    key = base64.b64encode(f"a key of a local account: {name:<38}".encode()).decode()
    return Account(role, name, key)


def accounts_of(worker: int) -> list[Account]:
    return [account_of(role, worker) for role in ROLES]


def all_accounts(workers: int) -> Iterator[Account]:
    for worker in range(workers):
        yield from accounts_of(worker)


def environment_of(worker: int) -> dict[str, str]:
    """Variables from which the stand-ins fill the arguments of the tests."""
    variables = {}
    for account in accounts_of(worker):
        variables[f"ASTERISM_TESTS_{account.role.name.upper()}ACCOUNT_NAME"] = account.name
        variables[f"ASTERISM_TESTS_{account.role.name.upper()}ACCOUNT_KEY"] = account.key
    return variables | {"ASTERISM_TESTS_STORAGE_TOKEN_KEY": accounts_of(worker)[0].key}
