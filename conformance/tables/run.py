"""`make conformance-tables`: download the client's tests, start Asterism over https, run them, write the score."""

from __future__ import annotations

import argparse
import base64
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.document import write_part
from conformance.outcomes import Outcome, Result, explain, read_outcomes, read_reasons, reasons_no_longer_needed
from conformance.report import files, listing, table, unneeded
from conformance.server import START, ServerNotReady, free_port, stop, wait_until_ready
from conformance.stores import LMDB, SHOWN, STORES, part_name, store_options, title, verb
from conformance.workspace import unpack_source

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "conformance-tables"
REPORT = PROJECT / "docs" / "conformance.md"
REASONS = PROJECT / "conformance" / "expected-tables.toml"
STAND_INS = PROJECT / "conformance" / "stand_ins"

CLIENT_PACKAGE = "azure-data-tables"
TIMEOUT_SECONDS = 120

# Two accounts, each known to its own port only: some tests show the one's key to the other's port.
STORAGE_ACCOUNT = "asterismstorage"
COSMOS_ACCOUNT = "asterismcosmos"
STORAGE_KEY = base64.b64encode(b"a key of 32 bytes, for storage..").decode()
COSMOS_KEY = base64.b64encode(b"a key of 32 bytes, for cosmos...").decode()


@dataclass(frozen=True)
class Ports:
    table: int
    cosmos: int


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="conformance-tables", description=__doc__)
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--server-args", default="", help="more options for `asterism serve`")
    parser.add_argument("--strict", action="store_true", help="fail if a test fails without a known reason")
    parser.add_argument("pytest_arguments", nargs="*", help="after --: more arguments for pytest, tests for example")
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    source, version = unpack_source(BUILD, CLIENT_PACKAGE)
    settings = BUILD / "pytest.ini"
    settings.write_text("[pytest]\nasyncio_mode = auto\nfilterwarnings =\n    ignore\njunit_family = xunit1\n")
    try:
        with (
            store_options(options.store) as store,
            running_server([*store, *shlex.split(options.server_args)]) as ports,
        ):
            outcomes = run_tests(source / "tests", settings, ports, options.pytest_arguments)
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2
    reasons = read_reasons(REASONS)
    explained = list(explain(outcomes, reasons))
    # A part of the tests does not make a score: it is shown, and the whole score is left alone.
    text = write_report(version, options.store, explained, reasons_no_longer_needed(explained, reasons))
    if options.pytest_arguments:
        print(text)
    else:
        write_part(REPORT, part_name("tables", options.store), text)
    count = Counter(outcome.result for outcome in explained)
    print(", ".join(f"{result} {count[result]}" for result in Result))
    unexplained = count[Result.FAILED] + count[Result.ERROR]
    return 1 if not explained or (options.strict and unexplained) else 0


@contextmanager
def running_server(more_arguments: list[str]) -> Iterator[Ports]:
    ports = Ports(free_port(), free_port())
    log = BUILD / "server.log"
    with tempfile.TemporaryDirectory(prefix="asterism-conformance-") as data, log.open("wb") as output:
        arguments = ["--data", data, "--https", "--apis", "table", "--no-throttle"]
        arguments += ["--table-port", str(ports.table), "--cosmos-table-port", str(ports.cosmos)]
        arguments += ["--table-account", f"{STORAGE_ACCOUNT}:{STORAGE_KEY}"]
        arguments += ["--cosmos-table-account", f"{COSMOS_ACCOUNT}:{COSMOS_KEY}", *more_arguments]
        process = subprocess.Popen([*START, *arguments], stdout=output, stderr=subprocess.STDOUT, cwd=PROJECT)
        try:
            wait_until_ready(process, port=ports.cosmos, log=log)
            yield ports
        finally:
            stop(process)


def run_tests(tests: Path, settings: Path, ports: Ports, more_arguments: list[str]) -> dict[str, Outcome]:
    junit = BUILD / "junit.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "conformance.tables.plugin"]
    command += ["-p", "no:cacheprovider", "-c", str(settings), "--rootdir", str(tests)]
    command += ["--timeout", str(TIMEOUT_SECONDS), f"--junit-xml={junit}", *(more_arguments or ["."])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(STAND_INS)]),
        "AZURE_TEST_RUN_LIVE": "true",
        "ASTERISM_TESTS_TABLE": f"https://127.0.0.1:{ports.table}",
        "ASTERISM_TESTS_COSMOS": f"https://127.0.0.1:{ports.cosmos}",
        "ASTERISM_TESTS_STORAGE_TOKEN_KEY": STORAGE_KEY,
        "ASTERISM_TESTS_COSMOS_TOKEN_KEY": COSMOS_KEY,
        "ASTERISM_TESTS_TABLES_STORAGE_ACCOUNT_NAME": STORAGE_ACCOUNT,
        "ASTERISM_TESTS_TABLES_PRIMARY_STORAGE_ACCOUNT_KEY": STORAGE_KEY,
        "ASTERISM_TESTS_TABLES_COSMOS_ACCOUNT_NAME": COSMOS_ACCOUNT,
        "ASTERISM_TESTS_TABLES_PRIMARY_COSMOS_ACCOUNT_KEY": COSMOS_KEY,
    }
    with (BUILD / "pytest.log").open("wb") as log:
        subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=log, check=False)
    return read_outcomes(junit) if junit.exists() else {}


def write_report(version: str, store: str, outcomes: list[Outcome], unneeded_reasons: list[str]) -> str:
    by_file = {file: [outcome for outcome in outcomes if outcome.file == file] for file in files(outcomes)}
    lines = [
        title("Tables", store),
        "",
        f"The tests that `{CLIENT_PACKAGE}` {version} brings in its own source distribution, run unchanged against",
        f"Asterism over https, on {SHOWN[store]}, with the product's own addresses (the account in the host name).",
        f"Written by `{verb('conformance-tables', store)}`. Files named `cosmos` run against the port for Cosmos DB",
        "for Table. Waits for the service to copy itself are a tenth of a second here (conformance/tables/plugin.py).",
        "Explained tests fail for a reason that is written in conformance/expected-tables.toml.",
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
