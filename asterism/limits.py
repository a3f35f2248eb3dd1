"""Every limit of the database, in one place, with where its number comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# The service refuses longer names of databases and containers with 400.
RESOURCE_NAME_CHARACTERS_MAX = 255
# The client's own tests expect the refusal at 1,024 characters, so 1,023 is the longest.
ITEM_ID_CHARACTERS_MAX = 1023

# The service's limit for a value of a version 2 key; version 1 keys have the same one here.
PARTITION_KEY_BYTES_MAX = 2048
PARTITION_KEY_LEVELS_MAX = 3

# The service's own nesting limit for an item.
ITEM_NESTING_LEVELS_MAX = 128

# One page of a feed or query: 4 MB, and 100 items when the client leaves the choice to the server.
PAGE_BYTES_MAX = 4 * MIB
PAGE_ITEMS_DEFAULT = 100
PAGE_ITEMS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits an operator may lower (or, for tests and demonstrations, lower to kilobytes)."""

    # Larger items are refused with 413; checked again after system properties are added.
    item_bytes_max: int = 2 * MIB
    # The largest request body a door reads before it answers 413; a little above an item for its envelope.
    request_bytes_max: int = 4 * MIB
    # Spec C4: the write that would pass this is refused with 403, substatus 1014.
    logical_partition_bytes_max: int = 20 * GIB
    # Spec C4 and C12: the same for fixed containers (no partition key).
    fixed_container_bytes_max: int = 10 * GIB
    # Spec C5: a physical partition splits before it passes this.
    physical_partition_bytes_max: int = 50 * GIB
    # Spec C5.
    physical_partition_ru_per_second_max: int = 10_000
    # A range of ordered keys serves whatever it is asked; one that serves more than this for a while is divided. The
    # service speaks of 20,000 entities of 1 KB a second.
    ordered_range_ru_per_second_max: int = 20_000
    # At creation with manual throughput the service plans for this many RU/s per partition.
    initial_manual_ru_per_second_per_partition: int = 6_000
    # Spec C12: the floor of provisioned throughput.
    throughput_ru_per_second_min: int = 400
    # What all queries of one process may keep in memory together: those that sort, group or make large results. One
    # more than fits is answered 429 and retried by its client; two of the largest fit.
    query_memory_bytes_max: int = 512 * MIB
    # The service's ceiling for one container is raised on request; this one is ours, to keep a typo from
    # creating a hundred thousand partitions.
    throughput_ru_per_second_max: int = 10_000_000
    # Connections of one port of one process, as far as the system's open files allow. Spec: ten thousand idle ones
    # leave the server answering; twice that, so that as many again can work.
    connections_max: int = 20_000
    # From the start of a connection to its first whole request head.
    first_request_seconds_max: int = 60
    # Between the requests of a connection; longer than the official clients keep idle ones.
    idle_connection_seconds_max: int = 180
    # Of a body: between two pieces of it, and as a whole (16 MB at 55 KB/s).
    body_pause_seconds_max: int = 30
    body_seconds_max: int = 300
    # A client that owes the reading of an answer must take 64 KB, or the rest, in this time.
    answer_pause_seconds_max: int = 60
    # Of all requests of a process together: 64 bodies of the largest size, and as many of the largest pages.
    body_bytes_in_flight_max: int = 256 * MIB
    answer_bytes_in_flight_max: int = 256 * MIB

    def with_changes(self, **changes: int) -> Limits:
        return replace(self, **changes)


DEFAULT_LIMITS = Limits()
