"""`make conformance-amqp`: download the messaging clients' tests, start Asterism with a certificate, run them."""

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

from conformance.amqp.namespace import CERTIFICATE_NAMES, Ports, environment_of_tests
from conformance.amqp.suites import SUITES, Source, Suite, chosen_suites, pytest_arguments, workers_of
from conformance.document import write_part
from conformance.outcomes import Outcome, Result, explain, read_outcomes, read_reasons, reasons_no_longer_needed
from conformance.report import files, listing, table, unneeded
from conformance.server import START, ServerNotReady, free_port, stop, wait_until_ready
from conformance.storage.accounts import accounts_of, environment_of
from conformance.stores import LMDB, SHOWN, STORES, part_name, store_options, title, verb
from conformance.workspace import unpack_source

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "conformance-amqp"
REPORT = PROJECT / "docs" / "conformance.md"
REASONS = PROJECT / "conformance" / "expected-amqp.toml"
STAND_INS = PROJECT / "conformance" / "amqp" / "stand_ins"

# Some tests hold locks and sessions for minutes.
TIMEOUT_SECONDS = 600
# The tests sleep most of their time: two hours of it become a quarter.
WORKERS = 12


@dataclass(frozen=True)
class SuiteServer:
    ports: Ports
    certificate: Path

    def environment(self) -> dict[str, str]:
        return environment_of_tests(self.ports, self.certificate, environment_of(0))


@dataclass(frozen=True)
class UnpackedSource:
    source: Source
    tests: Path
    version: str


def main(arguments: list[str]) -> int:
    options = read_arguments(arguments)
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    settings = options.output / "pytest.ini"
    settings.write_text("[pytest]\nasyncio_mode = auto\nfilterwarnings =\n    ignore\njunit_family = xunit1\n")
    has_failed = False
    try:
        for suite in options.suites:
            unpacked = [unpack(source) for source in suite.sources]
            # A server for each suite: failures of the one say nothing about the other.
            with store_options(options.store) as store, running_suite_server(suite, options, store) as server:
                outcomes = run_suite(suite, unpacked, settings, server, options)
            has_failed |= not report(suite, [each.version for each in unpacked], outcomes, options)
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2
    return 1 if has_failed else 0


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conformance-amqp", description=__doc__)
    names = ",".join(suite.name for suite in SUITES)
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--only", default=names, help=f"suites to run (default: {names})")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"processes of pytest (default: {WORKERS})")
    parser.add_argument("--server-args", default="", help="more options for `asterism serve`")
    parser.add_argument("--output", type=Path, default=BUILD, help="folder of logs, for runs at the same time")
    parser.add_argument("--strict", action="store_true", help="fail if a test fails without a known reason")
    parser.add_argument("pytest_arguments", nargs="*", help="after --: more arguments for pytest, tests for example")
    options = parser.parse_args(arguments)
    try:
        options.suites = chosen_suites(options.only)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def unpack(source: Source) -> UnpackedSource:
    folder, version = unpack_source(BUILD, source.package)
    return UnpackedSource(source, folder / "tests", version)


@contextmanager
def running_suite_server(suite: Suite, options: argparse.Namespace, store: Sequence[str]) -> Iterator[SuiteServer]:
    ports = Ports(amqp=free_port(), amqps=free_port(), administration=free_port(), blob=free_port())
    account = accounts_of(0)[0]
    log = options.output / f"{suite.name}-server.log"
    with tempfile.TemporaryDirectory(prefix="asterism-conformance-") as data, log.open("wb") as output:
        arguments = ["--data", data, "--https", "--apis", "amqp,blob", "--no-throttle", *store]
        # The key of the namespace is the emulators' own, with which no other names would be answered.
        arguments += ["--allowed-host", "*", *(word for name in CERTIFICATE_NAMES for word in ("--tls-name", name))]
        arguments += ["--amqp-port", str(ports.amqp), "--amqps-port", str(ports.amqps)]
        arguments += ["--messaging-port", str(ports.administration), "--blob-port", str(ports.blob)]
        arguments += ["--storage-account", f"{account.name}:{account.key}", *shlex.split(options.server_args)]
        process = subprocess.Popen([*START, *arguments], stdout=output, stderr=subprocess.STDOUT, cwd=PROJECT)
        try:
            # All ports are open when one answers. The one for blobs is known to answer this question.
            wait_until_ready(process, port=ports.blob, log=log)
            yield SuiteServer(ports, Path(data) / "tls" / "certificate.pem")
        finally:
            stop(process)


def run_suite(
    suite: Suite, unpacked: list[UnpackedSource], settings: Path, server: SuiteServer, options: argparse.Namespace
) -> dict[str, Outcome]:
    """Run all tests, several at a time; then those that failed once more, alone: many of them count on seconds."""
    outcomes: dict[str, Outcome] = {}
    workers = workers_of(suite, options.workers)
    for number, each in enumerate(unpacked):
        name = f"{suite.name}-{number}"
        found = run_tests(each, name, settings, server, options, workers=workers, given=options.pytest_arguments)
        failed = [test for test, outcome in found.items() if outcome.result in (Result.FAILED, Result.ERROR)]
        if failed and workers > 1 and not options.pytest_arguments:
            # Identifiers that differ from run to run do not name a test: then all of its parameters run again.
            again = sorted({test.partition("[")[0] if "…" in test else test for test in failed})
            later = run_tests(each, f"{name}-again", settings, server, options, workers=1, given=again)
            found |= {test: outcome for test, outcome in later.items() if test in found}
        outcomes |= found
    return outcomes


def run_tests(
    unpacked: UnpackedSource,
    name: str,
    settings: Path,
    server: SuiteServer,
    options: argparse.Namespace,
    *,
    workers: int,
    given: Sequence[str],
) -> dict[str, Outcome]:
    junit = options.output / f"{name}-junit.xml"
    junit.unlink(missing_ok=True)
    tests = unpacked.tests
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "conformance.amqp.plugin"]
    command += ["-p", "no:cacheprovider", "-c", str(settings), "--rootdir", str(tests)]
    command += ["--timeout", str(TIMEOUT_SECONDS), f"--junit-xml={junit}"]
    command += pytest_arguments(unpacked.source, workers=workers, given=given)
    folders = [PROJECT, STAND_INS, tests, *(tests / folder for folder in unpacked.source.imported)]
    environment = {
        **os.environ,
        **server.environment(),
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        # Parameters of some tests are sets, which every worker must find in one order.
        "PYTHONHASHSEED": "0",
    }
    with (options.output / f"{name}-pytest.log").open("wb") as log:
        subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=log, check=False)
    outcomes = read_outcomes(junit) if junit.exists() else {}
    # Files that are missing are named with the folder of this machine.
    return {test: replace(outcome, why=outcome.why.replace(str(BUILD), "…")) for test, outcome in outcomes.items()}


def report(suite: Suite, versions: list[str], outcomes: dict[str, Outcome], options: argparse.Namespace) -> bool:
    """Write or show the score; return whether it is as it should be."""
    reasons = read_reasons(REASONS)
    explained = list(explain(outcomes, reasons))
    unneeded_reasons = reasons_no_longer_needed(explained, reasons)
    text = write_report(suite, versions, options.store, explained, unneeded_reasons)
    # A part of the tests does not make a score: it is shown, and the whole score is left alone.
    if options.pytest_arguments:
        print(text)
    else:
        write_part(REPORT, part_name(suite.part, options.store), text)
    count = Counter(outcome.result for outcome in explained)
    print(f"{suite.name}: " + ", ".join(f"{result} {count[result]}" for result in Result))
    unexplained = count[Result.FAILED] + count[Result.ERROR]
    return bool(explained) and not (options.strict and unexplained)


def write_report(
    suite: Suite, versions: Sequence[str], store: str, outcomes: list[Outcome], unneeded_reasons: Sequence[str]
) -> str:
    by_file = {file: [outcome for outcome in outcomes if outcome.file == file] for file in files(outcomes)}
    run = [outcome for outcome in outcomes if outcome.result is not Result.SKIPPED]
    passed = sum(outcome.result is Result.PASSED for outcome in run)
    packages = " and ".join(f"`{package}` {version}" for package, version in zip(suite.packages, versions, strict=True))
    lines = [
        title(suite.heading, store),
        "",
        f"The tests that {packages}",
        "bring in their source distributions, run unchanged against Asterism with the product's own addresses",
        f"(the namespace in the host name), on {SHOWN[store]}.",
        suite.note,
        f"Written by `{verb('conformance-amqp', store)}`: {passed} of {len(run)} that run pass.",
        "Tests that failed beside others were run once more alone. Skipped tests are skipped by their authors.",
        "Explained tests fail for a reason that is written in conformance/expected-amqp.toml.",
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
