"""The examples of docs/guides/patterns: what they print, and that their pictures show what the guides say.

Each example runs once, on a server that throttles. The request units of a throttled partition and the number of its
429s depend on the speed of the machine, and those of a random suffix on its draws: both are compared with limits, and
everything else is exact.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.pattern_pictures import EXAMPLES, GUIDES, PATTERNS, read_figures, read_pictures, run_example
from tests.support.server import WAIT_SECONDS_MAX, RunningServer, environment, running_server

# Request units of the busiest of four partitions, as a multiple of their mean; refused requests cost none.
SKEWED_RATIO_MIN = 2.5
EVEN_RATIO_MAX = 2.0
# Its draws may send a few writes too many to one partition.
RANDOM = "by-date-and-random"
EXAMPLES_FROM_GUIDES = "../../../examples/patterns"
# Modules that the examples share.
HELPERS = {"burst", "connection", "costs", "operator_endpoint", "partition_picture"}

# The output of each example, without its pictures.
EXPECTED = {
    "user_profiles": """\
by country, the id alone: 1 results, 4 partition(s) read, 2.69 RU
by user, a point read: 1.00 RU
by country, the user moves: 400
by user, the user moves: FR
one transaction for profile and settings: [201, 200]
""",
    "device_telemetry": """\
by-date, a reading: 1.00 RU
by-date, readings in its logical partition: 24
by-date, a device today: 1 results, 1 partition(s) read, 2.38 RU
by-date, all days of a device: 2 results, 4 partition(s) read, 9.86 RU
by-device, a reading: 1.00 RU
by-device, readings in its logical partition: 2
by-device, a device today: 1 results, 1 partition(s) read, 2.38 RU
by-device, all days of a device: 2 results, 1 partition(s) read, 2.31 RU
by-device-and-day, a reading: 1.00 RU
by-device-and-day, readings in its logical partition: 1
by-device-and-day, a device today: 1 results, 1 partition(s) read, 2.38 RU
by-device-and-day, all days of a device: 2 results, 4 partition(s) read, 9.86 RU
hierarchical, a reading: 1.00 RU
hierarchical, readings in its logical partition: 1
hierarchical, a device today: 1 results, 1 partition(s) read, 2.28 RU
hierarchical, all days of a device: 2 results, 1 partition(s) read, 2.53 RU
""",
    "time_series_by_date": """\
by-day, a reading by its id and time: 2026-11-05, 1.00 RU
by-day, a day by its bounds: 6 results, 2 partition(s) read, 5.07 RU
by-id, a day: 6 results, 4 partition(s) read, 9.62 RU
by-id, three days: 18 results, 4 partition(s) read, 10.05 RU
by-day, a day: 6 results, 1 partition(s) read, 2.42 RU
by-day, three days: 18 results, 2 partition(s) read, 5.01 RU
""",
    "time_series_many_writes": """\
by-date, a reading by its id: 1.00 RU
by-date, a day: 38 results, 1 partition(s) read, 3.33 RU
by-device, a reading by its id: 1.00 RU
by-device, a day: 38 results, 4 partition(s) read, 10.88 RU
by-date-and-hash, a reading by its id: 1.00 RU
by-date-and-hash, a day: 38 results, 4 partition(s) read, 14.10 RU
by-date-and-random, a reading by its id: 40.00 RU
by-date-and-random, a day: 38 results, 4 partition(s) read, 14.10 RU
""",
    "time_series_by_month": """\
RU/s of the months: [400, 400, 24000]
a meter in a past month: 2 results, 1 partition(s) read, 2.31 RU
a meter in all months: 3 queries, 6.93 RU
removing a month from one container: 30 requests, 160 RU
removing the container of a month: 1 request
""",
    "tenants_by_key": """\
by kind, a tenant's users: 2 results, 4 partition(s) read, 9.86 RU
by tenant, a tenant's users: 2 results, 1 partition(s) read, 2.31 RU
by tenant, a user and the plan in one transaction: [200, 201]
by tenant and user, users of the large tenant: 3 results, 2 partition(s) read, 4.92 RU
""",
    "tenants_by_container": """\
left when a tenant is gone: ['tenant-cedar', 'tenants']
""",
    "tenants_promoted": """\
rows written meanwhile that are missing: 0
a point read by the old container: row-007, 1.00 RU
by the new container: row-007
tenants in a query over the old container: ['acorn', 'birch', 'fir', 'hazel', 'linden', 'maple', 'oak']
a write by the old container after --end: 403
""",
    "item_id_as_key": """\
by-status, a point read: 1.00 RU
by-status, the latest of a customer: 2 results, 4 partition(s) read, 9.86 RU
by-status, two orders in one transaction: done
by-id, a point read: 1.00 RU
by-id, the latest of a customer: 2 results, 4 partition(s) read, 9.86 RU
by-id, two orders in one transaction: refused with 400
by-customer, a point read: 1.00 RU
by-customer, the latest of a customer: 2 results, 1 partition(s) read, 2.31 RU
by-customer, two orders in one transaction: done
""",
    "index_table": """\
orders, latest of a product: 3 results, 4 partition(s) read, 9.91 RU
entries, before the feed was read: 0 results, 1 partition(s) read, 2.25 RU
orders entered from the feed: 90
an entry costs 5.25 RU to write
entries, latest of a product: 3 results, 1 partition(s) read, 2.33 RU
the whole order o-0061, a point read: 1.00 RU
orders entered after a change: 1
the canceled order is found: False
""",
    "two_tiers": """\
copied from the regions: [23, 22]
copied without a change: [0, 0]
local, orders of a shop: 2 results, 1 partition(s) read, 2.31 RU
local, orders of a customer: 1 results, 4 partition(s) read, 9.83 RU
global, orders of a customer: 3 results, 1 partition(s) read, 2.34 RU
local, orders of a region after their time to live: 0
global, orders of a region after their time to live: 22
""",
}

# Containers of the same load: with a bad key, and then with good ones.
COMPARED = {
    "user_profiles": ("by-country", "by-user"),
    "device_telemetry": ("by-date", "by-device", "by-device-and-day", "hierarchical"),
    "time_series_many_writes": ("by-date", "by-device", "by-date-and-hash"),
    "time_series_by_month": ("readings", "readings-2026-11"),
    "item_id_as_key": ("by-status", "by-id", "by-customer"),
    "two_tiers": ("orders", "recent-eu"),
}

Partitions = list[Mapping[str, Any]]


@dataclass(frozen=True)
class Run:
    text: str
    pictures: Mapping[str, Partitions]

    @property
    def facts(self) -> str:
        """Everything but the pictures, whose bars are indented."""
        lines = [line for line in self.text.splitlines(keepends=True) if not line.startswith("  ")]
        return "".join(line for line in lines if not line.endswith("by partition\n"))


# As docs/guides/synthetic-keys.md says, with the rule in the place where clients send it.
SEED = {
    "databases": [
        {
            "id": "seeded",
            "containers": [
                {
                    "id": "readings",
                    "partitionKey": {"paths": ["/pk"], "synthetic": {"/pk": {"parts": ["/deviceId", "/date"]}}},
                    "items": [{"id": "1", "deviceId": "abc", "date": "2026"}],
                }
            ],
        }
    ]
}


@pytest.fixture(scope="module")
def throttling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("patterns")
    seed = directory / "seed.json"
    seed.write_text(json.dumps(SEED))
    with running_server(directory / "data", "--seed", str(seed)) as running:
        yield running


def run(name: str, server: RunningServer, directory: Path) -> Run:
    """Run an example, and check that it prints what is expected and has the pictures of the guide."""
    directory.mkdir(exist_ok=True)
    figures = directory / f"{name}.jsonl"
    done = run_example(name, endpoint=server.endpoint, figures=figures)
    assert done.returncode == 0, done.stderr
    finished = Run(done.stdout, {picture["title"]: picture["partitions"] for picture in read_pictures(figures)})
    assert finished.facts == EXPECTED[name]
    in_guide = {picture["title"]: picture["partitions"] for picture in read_figures()[name]}
    assert shape(finished.pictures) == shape(in_guide)
    return finished


def shape(pictures: Mapping[str, Partitions]) -> dict[str, list[object]]:
    """Return what is equal in every run: the partitions, and which of them were throttled."""
    return {
        title: [(partition["id"], partition["throttled"] > 0 and title != RANDOM) for partition in partitions]
        for title, partitions in pictures.items()
    }


def total(partitions: Partitions, figure: str) -> float:
    return sum(partition[figure] for partition in partitions)


def ratio(partitions: Partitions) -> float:
    """Return the request units of the busiest partition as a multiple of the mean."""
    largest = max(partition["request_units"] for partition in partitions)
    return float(largest * len(partitions) / total(partitions, "request_units"))


def check_load(bad: Partitions, *good: Partitions) -> None:
    """Check the same load on several keys: with the bad one a single partition of four has it, and throttles."""
    assert ratio(bad) > SKEWED_RATIO_MIN
    assert [partition["throttled"] > 0 for partition in bad].count(True) == 1
    assert [total(partitions, "throttled") for partitions in good] == [0] * len(good)
    assert max(map(ratio, good)) < EVEN_RATIO_MAX


@pytest.mark.parametrize("name", sorted({*COMPARED} - {"time_series_many_writes"}))
def test_a_bad_key_throttles_one_partition_and_a_good_one_none(
    name: str, throttling: RunningServer, tmp_path: Path
) -> None:
    pictures = run(name, throttling, tmp_path).pictures
    check_load(*(pictures[container] for container in COMPARED[name]))


def test_suffixes_spread_the_writes_of_a_day(throttling: RunningServer, tmp_path: Path) -> None:
    pictures = run("time_series_many_writes", throttling, tmp_path).pictures
    check_load(*(pictures[container] for container in COMPARED["time_series_many_writes"]))
    assert ratio(pictures[RANDOM]) < EVEN_RATIO_MAX
    assert total(pictures[RANDOM], "throttled") < total(pictures["by-date"], "throttled") / 2


def test_the_tenant_as_key_spreads_load_and_a_second_level_divides_a_large_one(
    throttling: RunningServer, tmp_path: Path
) -> None:
    pictures = run("tenants_by_key", throttling, tmp_path).pictures
    check_load(pictures["by-kind"], pictures["by-tenant"])
    whole, divided = (
        [partition["items"] for partition in pictures[f"{container}, a large tenant, after a split"]]
        for container in ("by-tenant", "by-tenant-and-user")
    )
    assert len(whole) == len(divided) == 5
    # The large tenant has 80 of the items: after a split, a partition has them all, or none has.
    assert max(whole) >= 80
    assert max(divided) < 80


def test_reports_of_a_day_cost_a_fraction_with_the_day_as_the_key_and_again_the_same(
    throttling: RunningServer, tmp_path: Path
) -> None:
    first, again = (run("time_series_by_date", throttling, tmp_path / name) for name in ("first", "again"))
    assert first == again
    by_id, by_day = first.pictures["by-id, 10 reports of a day"], first.pictures["by-day, 10 reports of a day"]
    assert total(by_id, "request_units") > 3.5 * total(by_day, "request_units")


def test_an_index_table_costs_a_fraction_of_searches_in_all_partitions(
    throttling: RunningServer, tmp_path: Path
) -> None:
    pictures = run("index_table", throttling, tmp_path).pictures
    searched, indexed = pictures["orders, 20 searches"], pictures["orders-by-product, 20 searches"]
    assert total(searched, "request_units") > 4 * total(indexed, "request_units")


def throttled_requests(done: Run, tenant: str) -> list[str]:
    """Return what the example prints of a tenant's throttled requests: before, and in a container of its own."""
    front = f"  throttled requests of {tenant}: "
    return [line.removeprefix(front) for line in done.text.splitlines() if line.startswith(front)]


def test_a_container_of_its_own_keeps_a_tenant_from_the_import_of_another(
    throttling: RunningServer, tmp_path: Path
) -> None:
    before, after = throttled_requests(run("tenants_by_container", throttling, tmp_path), "linden")
    assert before != "0 of 20"
    assert after == "0 of 20"


def test_a_promoted_tenant_throttles_its_neighbor_no_more(throttling: RunningServer, tmp_path: Path) -> None:
    done = run("tenants_promoted", throttling, tmp_path)
    before, after = throttled_requests(done, "linden")
    assert before != "0 of 20"
    assert after == "0 of 20"
    # A container whose requests are forwarded does not pay for them.
    assert total(done.pictures["after, tenants"], "request_units") < 20 * 6
    assert total(done.pictures["after, tenant-cedar"], "request_units") > 20 * 18


def test_the_guides_name_every_example_and_show_its_picture() -> None:
    guides = {path.name: path.read_text(encoding="utf-8") for path in GUIDES.glob("*.md")}
    text = "".join(guides.values())
    examples = {path.stem for path in EXAMPLES.glob("*.py")} - HELPERS
    assert examples == set(EXPECTED) == {pattern.example for pattern in PATTERNS}
    assert [name for name in examples if f"({EXAMPLES_FROM_GUIDES}/{name}.py)" not in text] == []
    assert [each.picture_name for each in PATTERNS if f"(../../pictures/{each.picture_name})" not in text] == []
    assert [name for name in guides if name != "README.md" and f"({name}" not in guides["README.md"]] == []


def test_the_guide_to_synthetic_keys_prints_what_it_says(throttling: RunningServer) -> None:
    guide = (GUIDES.parent / "synthetic-keys.md").read_text(encoding="utf-8")
    session = "\n".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL))
    said = re.findall(r"^print\(.*\)\s+# (.*)$", session, re.MULTILINE)
    assert said
    done = subprocess.run(
        [sys.executable, "-c", session.replace("http://127.0.0.1:8081", throttling.endpoint)],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
        env=environment(),
    )
    assert (done.stdout.splitlines(), done.returncode) == (said, 0), done.stderr


def test_a_seed_file_declares_a_synthetic_key(throttling: RunningServer) -> None:
    with throttling.client() as client:
        readings = client.get_database_client("seeded").get_container_client("readings")
        assert readings.read_item("1", ["abc", "2026"])["pk"] == "abc-2026"


@pytest.mark.parametrize("page", sorted(path.name for path in GUIDES.glob("*.md")))
def test_the_charges_on_a_page_are_those_that_its_examples_print(page: str) -> None:
    text = (GUIDES / page).read_text(encoding="utf-8")
    printed = "".join(EXPECTED[name] for name in EXPECTED if f"/{name}.py)" in text)
    charges = re.findall(r"\d+\.\d\d RU", text)
    assert [charge for charge in charges if f" {charge}" not in printed] == []
