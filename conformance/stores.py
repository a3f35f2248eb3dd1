"""The store that the server under test is given: the embedded one, or a PostgreSQL server for as long as it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

LMDB = "lmdb"
POSTGRES = "postgres"
STORES = (LMDB, POSTGRES)

# How a report says it.
SHOWN = {LMDB: "the embedded store", POSTGRES: "PostgreSQL"}


@contextmanager
def store_options(store: str) -> Iterator[tuple[str, ...]]:
    """Options for `asterism serve`."""
    if store == LMDB:
        yield ()
        return
    # Not at the top: what starts PostgreSQL belongs to the tests, and needs their packages.
    from tests.support.postgres import running_server

    with running_server() as server:
        yield ("--store", server.create_database())


def part_name(protocol: str, store: str) -> str:
    """The part of docs/conformance.md that a run on this store writes."""
    return protocol if store == LMDB else f"{protocol}_{store}"


def title(protocol: str, store: str) -> str:
    return f"## {protocol}" if store == LMDB else f"## {protocol} on {SHOWN[store]}"


def verb(name: str, store: str) -> str:
    return f"make {name}" if store == LMDB else f"make {name} STORE={store}"
