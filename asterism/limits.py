"""Every limit of the database, in one place, with the source of its number."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# The service refuses longer names of databases and containers with 400.
RESOURCE_NAME_CHARACTERS_MAX = 255
# The client's own tests expect the refusal at 1,024 characters, so 1,023 is the longest.
ITEM_ID_CHARACTERS_MAX = 1023

# The service's limit for a value of a version 2 key; version 1 keys have the same limit here.
PARTITION_KEY_BYTES_MAX = 2048
PARTITION_KEY_LEVELS_MAX = 3
# More than a key of 2 KB has room for in practice.
SYNTHETIC_KEY_PARTS_MAX = 8
# A read that names no suffix asks all of them. The service's own sample has 400.
SYNTHETIC_KEY_SUFFIXES_MAX = 1_000

# The service's own nesting limit for an item.
ITEM_NESTING_LEVELS_MAX = 128

# One page of a feed or query: 4 MB, and 100 items when the client leaves the choice to the server.
PAGE_BYTES_MAX = 4 * MIB
PAGE_ITEMS_DEFAULT = 100
PAGE_ITEMS_MAX = 1000


def limit(default: int, help: str) -> int:
    """Declare a field of a dataclass as a limit that an operator may change, with a line that says what it limits."""
    return field(default=default, metadata={"limit": help})


def limit_helps(limits: type[Any]) -> dict[str, str]:
    """Return the lines of help of the fields that are declared as limits, by field."""
    return {declared.name: declared.metadata["limit"] for declared in fields(limits) if "limit" in declared.metadata}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that an operator may lower (for tests and demonstrations, to kilobytes)."""

    # Checked again after system properties are added.
    item_bytes_max: int = limit(2 * MIB, "The largest item; larger ones are refused with 413.")
    # A little above an item, for its envelope.
    request_bytes_max: int = limit(4 * MIB, "The largest body of a request; larger ones are answered with 413.")
    # Spec C4: substatus 1014.
    logical_partition_bytes_max: int = limit(
        20 * GIB, "All items with one partition key value; the write that would pass it is refused with 403."
    )
    # Spec C4 and C12.
    fixed_container_bytes_max: int = limit(10 * GIB, "The same for a container without a partition key.")
    # Spec C5.
    physical_partition_bytes_max: int = limit(50 * GIB, "A physical partition; it splits before it passes this.")
    # Spec C5.
    physical_partition_ru_per_second_max: int = limit(
        10_000, "The throughput of a physical partition; a container that is given more gets more partitions."
    )
    # The service speaks of 20,000 entities of 1 KB a second.
    ordered_range_ru_per_second_max: int = limit(
        20_000, "The load of a range of ordered keys, as tables have; one that serves more for a while is divided."
    )
    # The service's own plan.
    initial_manual_ru_per_second_per_partition: int = limit(
        6_000, "How much of its manual throughput a new container plans for each partition."
    )
    # Spec C12.
    throughput_ru_per_second_min: int = limit(400, "The least throughput that a container or database can be given.")
    # One query more than fits is retried by its client; two of the largest fit.
    query_memory_bytes_max: int = limit(
        512 * MIB,
        "The memory of all queries of a process that sort, group or make large results; one more is answered 429.",
    )
    # The service's ceiling for one container is raised on request; this one is ours, to keep a typo from
    # creating a hundred thousand partitions.
    throughput_ru_per_second_max: int = limit(
        10_000_000, "The most throughput that a container or database can be given."
    )
    # Spec: ten thousand idle ones leave the server answering; twice that, so that as many again can work.
    connections_max: int = limit(
        20_000, "Connections of one port of one process, as far as the system's limit of open files allows."
    )
    first_request_seconds_max: int = limit(60, "From the start of a connection to its first whole request head.")
    # Longer than the official clients keep idle connections.
    idle_connection_seconds_max: int = limit(180, "Between two requests of a connection.")
    body_pause_seconds_max: int = limit(30, "Between two pieces of a request body.")
    # 16 MB at 55 KB/s.
    body_seconds_max: int = limit(300, "For a whole request body.")
    answer_pause_seconds_max: int = limit(
        60, "In which a client that has not read all of an answer must read 64 KB of it, or the rest."
    )
    # 64 bodies of the largest size, and as many of the largest pages.
    body_bytes_in_flight_max: int = limit(256 * MIB, "The bodies of all requests of a process together.")
    answer_bytes_in_flight_max: int = limit(
        256 * MIB, "The answers of a process that clients have not read yet, together."
    )

    def with_changes(self, **changes: int) -> Limits:
        return replace(self, **changes)


DEFAULT_LIMITS = Limits()
