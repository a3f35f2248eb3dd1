"""The suites of the messaging clients' tests: their packages, their files, and how they may be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.outcomes import VOLATILE


@dataclass(frozen=True)
class Source:
    """Tests of one source distribution: folders and files below its folder of tests, and those that are not run."""

    package: str
    chosen: tuple[str, ...] = (".",)
    left_out: tuple[str, ...] = ()
    # Folders from which the tests import each other, as their authors run them.
    imported: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suite:
    name: str
    # Of docs/conformance.md.
    part: str
    heading: str
    sources: tuple[Source, ...]
    note: str
    # False: the tests list or empty the whole namespace.
    may_run_beside_others: bool = True

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(source.package for source in self.sources)


_SERVICE_BUS_IMPORTED = ("async_tests", "mgmt_tests", "mgmt_tests/async")

SUITES = (
    Suite(
        "servicebus",
        "service_bus",
        "Service Bus",
        (
            Source(
                "azure-servicebus",
                left_out=("mgmt_tests", "test_mgmt_client_kwargs.py", "perf_tests"),
                imported=_SERVICE_BUS_IMPORTED,
            ),
        ),
        "Over TLS, and over websockets where the tests ask for them.",
    ),
    Suite(
        "administration",
        "service_bus_administration",
        "Service Bus administration",
        (
            Source(
                "azure-servicebus",
                chosen=("mgmt_tests", "test_mgmt_client_kwargs.py"),
                imported=_SERVICE_BUS_IMPORTED,
            ),
        ),
        "Over https; each test finds an empty namespace.",
        may_run_beside_others=False,
    ),
    Suite(
        "eventhub",
        "event_hubs",
        "Event Hubs",
        (Source("azure-eventhub", chosen=("livetest", "pyamqp_tests", "unittest")),),
        "Over TLS and over websockets, with checkpoints in containers of Asterism's own blobs.",
    ),
    Suite(
        "checkpoint",
        "checkpoint_stores",
        "Checkpoint stores of Event Hubs",
        (Source("azure-eventhub-checkpointstoreblob"), Source("azure-eventhub-checkpointstoreblob-aio")),
        "In containers of Asterism's own blobs, over https.",
    ),
)


def chosen_suites(names: str) -> list[Suite]:
    """Return the suites of a list of names with commas; ValueError for a name that none has."""
    by_name = {suite.name: suite for suite in SUITES}
    wanted = [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in by_name]:
        raise ValueError(f"no such suite: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [suite for suite in SUITES if suite.name in wanted]


def workers_of(suite: Suite, workers: int) -> int:
    return workers if suite.may_run_beside_others else 1


def pytest_arguments(source: Source, *, workers: int, given: Sequence[str]) -> list[str]:
    """Return the files, the left out ones, and the number of processes.

    `given`: options of the caller, and tests of particular files, which then run alone.
    """
    arguments = [f"--ignore={name}" for name in source.left_out]
    arguments += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    names_tests = any(".py" in word for word in given)
    return [*arguments, *given, *(() if names_tests else source.chosen)]


def distinct_names(node_ids: Iterable[str]) -> list[str]:
    """Number the tests whose names differ only by what differs from run to run: outcomes are kept by name."""
    names: list[str] = []
    counts: Counter[str] = Counter()
    for node_id in node_ids:
        stable = VOLATILE.sub("…", node_id)
        counts[stable] += 1
        names.append(node_id if counts[stable] == 1 else f"{node_id} #{counts[stable]}")
    return names
