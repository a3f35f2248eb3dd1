"""`make conformance`: download the client's tests, start Asterism over https, run them, write docs/conformance.md."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conformance.document import write_part
from conformance.outcomes import Outcome, Result, explain, read_outcomes, read_reasons, reasons_no_longer_needed
from conformance.report import Run, write_report
from conformance.server import EMULATOR_PORT, STOP_SECONDS_MAX, ServerNotReady, choose_port, running_server
from conformance.stores import LMDB, STORES, part_name, store_options
from conformance.workspace import Workspace, prepare_workspace

PROJECT = Path(__file__).resolve().parents[1]
BUILD = PROJECT / "build" / "conformance"
REPORT = PROJECT / "docs" / "conformance.md"
REASONS = Path(__file__).with_name("expected.toml")

MARKERS_DEFAULT = "cosmosLong or cosmosQuery or cosmosSplit or cosmosSearchQuery"
# The emulator's published key: the tests' own default.
KEY_DEFAULT = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

# pytest's exit statuses: all passed, some failed, none chosen. Anything else is a broken run, not a score.
EXIT_STATUS_OF_A_SCORE = (0, 1, 5)


@dataclass(frozen=True)
class Options:
    markers: str
    store: str
    workers: int
    timeout_seconds: int
    budget_seconds: int
    server_arguments: tuple[str, ...]
    strict: bool
    pytest_arguments: tuple[str, ...]


def read_options(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--markers", default=MARKERS_DEFAULT, help="pytest marker expression")
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--workers", type=int, default=4, help="test processes at a time")
    parser.add_argument("--timeout-seconds", type=int, default=120, help="the most that one test may take")
    parser.add_argument("--budget-seconds", type=int, default=2400, help="the most that all of it may take")
    parser.add_argument("--server-args", default="", help="more options for `asterism serve`")
    parser.add_argument("--strict", action="store_true", help="fail if a test fails without a known reason")
    parser.add_argument("pytest_arguments", nargs="*", help="after --: more arguments for pytest, tests for example")
    options = parser.parse_args(arguments)
    return Options(
        markers=options.markers,
        store=options.store,
        workers=options.workers,
        timeout_seconds=options.timeout_seconds,
        budget_seconds=options.budget_seconds,
        server_arguments=tuple(shlex.split(options.server_args)),
        strict=options.strict,
        pytest_arguments=tuple(options.pytest_arguments),
    )


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    key = os.environ.get("ACCOUNT_KEY", KEY_DEFAULT)
    workspace = prepare_workspace(BUILD, account_key=key)
    given_host = os.environ.get("ACCOUNT_HOST")
    if given_host:
        return run_and_report(workspace, options, host=given_host, key=key)
    port = choose_port()
    if port != EMULATOR_PORT:
        print(f"port {EMULATOR_PORT} is taken; using {port}, so tests that want an emulator's address will differ")
    try:
        with (
            store_options(options.store) as store,
            running_server(
                port=port, key=key, log=BUILD / "server.log", more_arguments=(*store, *options.server_arguments)
            ) as host,
        ):
            return run_and_report(workspace, options, host=host, key=key)
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2


def run_and_report(workspace: Workspace, options: Options, *, host: str, key: str) -> int:
    outcomes = run_tests(workspace, options, host=host, key=key)
    if not outcomes:
        return 2
    reasons = read_reasons(REASONS)
    explained = list(explain(outcomes, reasons))
    run = Run(
        client_version=workspace.client_version,
        markers=options.markers,
        store=options.store,
        command=shlex.join(["pytest", "-m", options.markers, *options.pytest_arguments]),
        is_emulator_address=host == f"https://localhost:{EMULATOR_PORT}/",
        unneeded_reasons=tuple(reasons_no_longer_needed(explained, reasons)),
    )
    text = write_report(run, explained)
    # A part of the tests does not make a score: it is shown, and the whole score is left alone.
    if options.pytest_arguments:
        print(text)
    else:
        write_part(REPORT, part_name("nosql", options.store), text)
    count = Counter(outcome.result for outcome in explained)
    print(", ".join(f"{result} {count[result]}" for result in Result))
    unexplained = count[Result.FAILED] + count[Result.ERROR]
    return 1 if options.strict and unexplained else 0


def run_tests(workspace: Workspace, options: Options, *, host: str, key: str) -> dict[str, Outcome]:
    """Every file in a process of its own, several at a time; then what failed once more, alone.

    Names of tests hold random identifiers, which pytest's own way of sharing tests between processes cannot bear; and
    some tests count what others create.
    """
    call = partial(
        run_pytest, workspace, options, host=host, key=key, ends_at=time.monotonic() + options.budget_seconds
    )
    if options.pytest_arguments:
        return call(0, options.pytest_arguments)
    files = files_to_run(workspace, options.markers)
    outcomes = run_files(call, {file: (file,) for file in files}, workers=options.workers)
    failed = [test for test, outcome in outcomes.items() if outcome.result in (Result.FAILED, Result.ERROR)]
    if failed and options.workers > 1:
        # A process for each file again: some tests leave the client changed when they fail.
        again: dict[str, tuple[str, ...]] = {}
        for test in sorted({test.partition("[")[0] for test in failed}):
            file = test.partition("::")[0]
            again[file] = (*again.get(file, ()), test)
        outcomes |= run_files(call, again, workers=1)
    return outcomes


def run_files(
    call: Callable[[int, tuple[str, ...]], dict[str, Outcome]], arguments: dict[str, tuple[str, ...]], *, workers: int
) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    with ThreadPoolExecutor(workers) as pool:
        all_found = pool.map(call, range(len(arguments)), arguments.values())
        for number, (file, found) in enumerate(zip(arguments, all_found, strict=True), start=1):
            outcomes |= found
            print(f"{number}/{len(arguments)} {file}: {len(found)} tests", flush=True)
    return outcomes


def files_to_run(workspace: Workspace, markers: str) -> list[str]:
    """Test files that name one of the markers, the longest first, so that no long one is left to the end."""
    wanted = [word for word in re.findall(r"\w+", markers) if word not in ("or", "and", "not")]
    texts = {file: file.read_text(encoding="utf-8") for file in workspace.tests.rglob("test_*.py")}
    chosen = [file for file, text in texts.items() if any(word in text for word in wanted)]
    chosen.sort(key=lambda file: (-len(texts[file]), file.name))
    return [str(file.relative_to(workspace.tests)) for file in chosen]


def run_pytest(
    workspace: Workspace,
    options: Options,
    number: int,
    arguments: tuple[str, ...],
    *,
    host: str,
    key: str,
    ends_at: float,
) -> dict[str, Outcome]:
    junit = BUILD / f"junit-{number}.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "conformance.plugin", "-p", "no:cacheprovider"]
    command += ["-m", options.markers, "--timeout", str(options.timeout_seconds), f"--junit-xml={junit}", *arguments]
    environment = {
        **os.environ,
        "ACCOUNT_HOST": host,
        "ACCOUNT_KEY": key,
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(workspace.stubs)]),
    }
    with (BUILD / f"pytest-{number}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=workspace.tests, env=environment, stdout=log, stderr=log)
        try:
            status = process.wait(max(ends_at - time.monotonic(), 1.0))
        except subprocess.TimeoutExpired:
            print(f"the tests took more than {options.budget_seconds} s; stopping them", file=sys.stderr)
            status = stop_tests(process)
    # Collection errors (2) and a run cut short still leave the outcomes of what did run.
    if status not in EXIT_STATUS_OF_A_SCORE:
        print(f"pytest ended with status {status} for {' '.join(arguments[:3])}", file=sys.stderr)
    return read_outcomes(junit) if junit.exists() else {}


def stop_tests(process: subprocess.Popen[bytes]) -> int:
    # An interrupted pytest still writes down what it knows.
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
