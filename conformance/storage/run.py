"""`make conformance-storage`: download the clients' tests of queues and blobs, start Asterism over https, run them."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.document import write_part
from conformance.outcomes import Outcome, Result, explain, read_outcomes, read_reasons, reasons_no_longer_needed
from conformance.report import files, listing, table, unneeded
from conformance.server import START, ServerNotReady, free_port, stop, wait_until_ready
from conformance.storage.accounts import all_accounts
from conformance.stores import LMDB, SHOWN, STORES, part_name, store_options, title, verb
from conformance.workspace import unpack_source

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "conformance-storage"
REPORT = PROJECT / "docs" / "conformance.md"
REASONS = PROJECT / "conformance" / "expected-storage.toml"
STAND_INS = PROJECT / "conformance" / "stand_ins"

# Leases of the tests last up to 60 seconds, and some wait for their end.
TIMEOUT_SECONDS = 180
WORKERS = 2


@dataclass(frozen=True)
class Suite:
    name: str
    part: str
    heading: str
    package: str
    # Files that are not run.
    left_out: tuple[str, ...] = ()


SUITES = (
    Suite("queue", "queues", "Queues", "azure-storage-queue"),
    # Those hold blocks of 4 GB in memory.
    Suite(
        "blob",
        "blobs",
        "Blobs",
        "azure-storage-blob",
        ("test_largest_block_blob.py", "test_largest_block_blob_async.py", "perfstress_tests"),
    ),
)


def main(arguments: list[str]) -> int:
    options = read_arguments(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    settings = options.output / "pytest.ini"
    settings.write_text("[pytest]\nasyncio_mode = auto\nfilterwarnings =\n    ignore\njunit_family = xunit1\n")
    chosen = [suite for suite in SUITES if suite.name in options.only.split(",")]
    has_failed = False
    try:
        for suite in chosen:
            # A server for each suite: failures of the one say nothing about the other.
            with store_options(options.store) as store, running_suite_server(suite, options, store) as address:
                source, version = unpack_source(BUILD, suite.package)
                outcomes = run_tests(suite, source / "tests", settings, address, options)
            has_failed |= not report(suite, version, outcomes, options)
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2
    return 1 if has_failed else 0


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conformance-storage", description=__doc__)
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--only", default="queue,blob", help="suites to run (default: queue,blob)")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes of pytest, each with its own accounts")
    parser.add_argument("--server-args", default="", help="more options for `asterism serve`")
    parser.add_argument("--output", type=Path, default=BUILD, help="folder of logs, for runs at the same time")
    parser.add_argument("--strict", action="store_true", help="fail if a test fails without a known reason")
    parser.add_argument("--queue-at", metavar="URL", default="", help="another server for queues that already runs")
    parser.add_argument("--blob-at", metavar="URL", default="", help="another server for blobs that already runs")
    parser.add_argument("--show-accounts", action="store_true", help="show the accounts that such a server must have")
    parser.add_argument("pytest_arguments", nargs="*", help="after --: more arguments for pytest, tests for example")
    options = parser.parse_args(arguments)
    if options.show_accounts:
        print(";".join(f"{account.name}:{account.key}" for account in all_accounts(options.workers)))
        parser.exit()
    return options


@contextmanager
def running_suite_server(suite: Suite, options: argparse.Namespace, store: Sequence[str]) -> Iterator[str]:
    """The base address of the service under test."""
    if other := vars(options)[f"{suite.name}_at"]:
        yield other
        return
    more = [*store, *account_options(suite, options.workers), *shlex.split(options.server_args)]
    port = free_port()
    log = options.output / f"{suite.name}-server.log"
    with tempfile.TemporaryDirectory(prefix="asterism-conformance-") as data, log.open("wb") as output:
        arguments = ["--data", data, "--https", "--apis", suite.name, "--no-throttle"]
        arguments += [f"--{suite.name}-port", str(port), *more]
        process = subprocess.Popen([*START, *arguments], stdout=output, stderr=subprocess.STDOUT, cwd=PROJECT)
        try:
            wait_until_ready(process, port=port, log=log)
            yield f"https://127.0.0.1:{port}"
        finally:
            stop(process)


def account_options(suite: Suite, workers: int) -> list[str]:
    chosen: list[str] = []
    for account in all_accounts(workers):
        chosen += ["--storage-account", f"{account.name}:{account.key}"]
        if suite.name == "blob":
            chosen += [text for option in account.role.options for text in (option, account.name)]
    return chosen


def run_tests(
    suite: Suite, tests: Path, settings: Path, address: str, options: argparse.Namespace
) -> dict[str, Outcome]:
    junit = options.output / f"{suite.name}-junit.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "conformance.storage.plugin"]
    command += ["-p", "no:cacheprovider", "-c", str(settings), "--rootdir", str(tests)]
    command += ["-n", str(options.workers), "--dist", "worksteal"] if options.workers > 1 else []
    command += [f"--ignore={name}" for name in suite.left_out]
    chosen = options.pytest_arguments or ["."]
    command += ["--timeout", str(TIMEOUT_SECONDS), f"--junit-xml={junit}", *chosen]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(STAND_INS)]),
        "AZURE_TEST_RUN_LIVE": "true",
        "AZURE_SKIP_LIVE_RECORDING": "true",
        "ASTERISM_TESTS_SUITE": suite.name,
        f"ASTERISM_TESTS_{suite.name.upper()}": address,
    }
    with (options.output / f"{suite.name}-pytest.log").open("wb") as log:
        subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=log, check=False)
    outcomes = read_outcomes(junit) if junit.exists() else {}
    # Files that are missing are named with the folder of this machine.
    return {test: replace(outcome, why=outcome.why.replace(str(BUILD), "…")) for test, outcome in outcomes.items()}


def report(suite: Suite, version: str, outcomes: dict[str, Outcome], options: argparse.Namespace) -> bool:
    """Write or show the score; return whether it is as it should be."""
    reasons = read_reasons(REASONS)
    explained = list(explain(outcomes, reasons))
    is_whole_score = not (options.pytest_arguments or vars(options)[f"{suite.name}_at"])
    text = write_report(suite, version, options.store, explained, reasons_no_longer_needed(explained, reasons))
    # A part of the tests, or another server, does not make a score: it is shown, and the whole score is left alone.
    if is_whole_score:
        write_part(REPORT, part_name(suite.part, options.store), text)
    else:
        print(text)
    count = Counter(outcome.result for outcome in explained)
    print(f"{suite.name}: " + ", ".join(f"{result} {count[result]}" for result in Result))
    unexplained = count[Result.FAILED] + count[Result.ERROR]
    return bool(explained) and not (options.strict and unexplained)


def write_report(
    suite: Suite, version: str, store: str, outcomes: list[Outcome], unneeded_reasons: Sequence[str]
) -> str:
    by_file = {file: [outcome for outcome in outcomes if outcome.file == file] for file in files(outcomes)}
    run = [outcome for outcome in outcomes if outcome.result is not Result.SKIPPED]
    passed = sum(outcome.result is Result.PASSED for outcome in run)
    left_out = [f"Not run: {', '.join(f'`{Path(name).stem}`' for name in suite.left_out)}."] if suite.left_out else []
    lines = [
        title(suite.heading, store),
        "",
        f"The tests that `{suite.package}` {version} brings in its own source distribution, run unchanged against",
        f"Asterism over https, on {SHOWN[store]}, with the product's own addresses (the account in the host name).",
        f"Written by `{verb('conformance-storage', store)}`: {passed} of {len(run)} that run pass.",
        "Skipped tests need a recording, or are skipped by their authors. Explained tests fail for a reason that is",
        "written in conformance/expected-storage.toml.",
        *left_out,
        "",
        *table("File", {**by_file, "**all**": outcomes}),
        "",
        *listing("Failing", outcomes, {Result.FAILED, Result.ERROR}),
        *listing("Explained", outcomes, {Result.EXPLAINED}),
        *unneeded(tuple(unneeded_reasons)),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
