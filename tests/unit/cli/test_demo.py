"""The pure parts of `asterism demo`: its telemetry, its rate, its figures and its addresses."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from asterism.cli.data_client import DataReply
from asterism.cli.demo import compare_address
from asterism.cli.demo_load import Tally, busiest_share, due_seconds, merged
from asterism.cli.demo_setup import splittable
from asterism.cli.demo_telemetry import DEVICES, Telemetry
from asterism.cli.failure import CommandFailed
from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.partition_key import PartitionKeyDefinition

START = datetime(2026, 3, 1, 23, 59, 50, tzinfo=UTC)
OPERATIONS = 4 * DEVICES


def telemetry(seed: int = 1) -> Telemetry:
    return Telemetry(seed=seed, start=START)


def test_a_seed_makes_the_same_telemetry_again() -> None:
    first, second = telemetry(), telemetry()
    assert [first.operation(number) for number in range(200)] == [second.operation(number) for number in range(200)]


def test_another_seed_makes_other_telemetry() -> None:
    assert telemetry(1).operation(0) != telemetry(2).operation(0)


def test_all_readings_of_a_run_have_one_date_and_different_ids() -> None:
    operations = [telemetry().operation(number) for number in range(OPERATIONS)]
    written = [operation.reading for operation in operations if not operation.is_read]
    assert {reading["date"] for reading in written} == {"2026-03-01"}
    assert len({reading["id"] for reading in written}) == len(written)


def test_a_fifth_of_the_operations_read_what_was_written_before() -> None:
    stream = telemetry()
    operations = [stream.operation(number) for number in range(OPERATIONS)]
    reads = [number for number, operation in enumerate(operations) if operation.is_read]
    written_at = {
        operation.reading["id"]: number for number, operation in enumerate(operations) if not operation.is_read
    }
    assert 0.15 < len(reads) / OPERATIONS < 0.25
    assert all(written_at[operations[number].reading["id"]] < number for number in reads)
    assert not operations[0].is_read


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_devices_share_the_load_and_spread_over_the_hash_line(seed: int) -> None:
    definition = PartitionKeyDefinition.parse({"paths": ["/deviceId"], "kind": "Hash", "version": 2})
    stream = telemetry(seed)
    devices = [stream.operation(number).reading["deviceId"] for number in range(OPERATIONS)]
    # Hashes have their two highest bits unset, so the next two name the quarter of the line.
    quarters = Counter(effective_key(definition, (device,))[0] >> 4 for device in devices)
    assert sorted(quarters) == [0, 1, 2, 3]
    assert max(quarters.values()) < 0.3 * OPERATIONS
    assert max(Counter(devices).values()) < 0.01 * OPERATIONS


def test_operations_are_due_at_the_rate() -> None:
    assert [due_seconds(number, rate=50) for number in (0, 25, 50)] == [0.0, 0.5, 1.0]


def reply(status: int, charge: str = "5.5") -> DataReply:
    return DataReply(status, {"x-ms-request-charge": charge}, None)


def test_answers_are_counted_by_their_status() -> None:
    tally = Tally()
    for answer in (reply(201), reply(429), reply(404, "1")):
        tally.add(answer)
    assert tally == Tally(accepted=2, throttled=1, request_units=6.5)
    assert merged([tally, tally]) == Tally(accepted=4, throttled=2, request_units=13.0)


def test_a_refusal_ends_the_load() -> None:
    with pytest.raises(CommandFailed, match="the server answered 400"):
        Tally().add(reply(400))


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ({"1": 10.0, "2": 0.0}, {"1": 40.0, "2": 10.0}, 0.75),
        ({}, {"1": 5.0}, 1.0),
        ({"1": 5.0}, {"1": 5.0}, None),
    ],
)
def test_the_busiest_partition_is_that_of_the_load_alone(
    before: dict[str, float], after: dict[str, float], share: float | None
) -> None:
    assert busiest_share(before, after) == share


@pytest.mark.parametrize(
    ("ids", "chosen"), [(["0"], ["0"]), (["1", "2"], ["1", "2"]), (["1", "2", "3"], ["1"]), (["1", "2", "3", "4"], [])]
)
def test_no_more_partitions_are_split_than_are_missing(ids: list[str], chosen: list[str]) -> None:
    assert splittable(ids, wanted=4) == chosen


def test_the_address_names_both_containers_with_their_account() -> None:
    assert compare_address("http://127.0.0.1:8090/", "blue") == (
        "http://127.0.0.1:8090/compare?left=blue/asterism-demo/telemetry-by-date"
        "&right=blue/asterism-demo/telemetry-by-device"
    )


def test_a_server_without_pages_has_no_address() -> None:
    assert compare_address(None, "blue") is None
