"""`make conformance-mongo`: run the functional tests of DocumentDB and the tests of pymongo, write the scores.

Both suites are downloaded, and nothing of them is kept in the project. The functional tests come from their public
repository, or from a folder with a checkout of them.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.document import write_part
from conformance.mongo.results import Line, read_lines, share, table
from conformance.server import START, ServerNotReady, free_port, stop
from conformance.stores import LMDB, SHOWN, STORES, part_name, store_options, title, verb

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "conformance-mongo"
REPORT = PROJECT / "docs" / "conformance.md"

FUNCTIONAL_REPOSITORY = "https://github.com/documentdb/functional-tests"
FUNCTIONAL_COMMIT = "935605abe70b"
PYMONGO = "4.19.0"
# The functional tests do not run with later versions of pytest.
PACKAGES = (
    "pytest>=8.2,<9",
    "pytest-xdist",
    "pytest-timeout",
    "pytest-json-report",
    "pytest-asyncio>=0.24",
    "pyyaml",
    "jinja2",
    f"pymongo=={PYMONGO}",
)
READY_SECONDS_MAX = 30.0
# Of one test.
FUNCTIONAL_SECONDS_MAX = 30
DRIVER_SECONDS_MAX = 60
TIERS = ("must", "should", "later")

# Files of the driver's tests that say something about a server; the others need none.
DRIVER_FILES = (
    "test/test_crud_unified.py",
    "test/test_collection.py",
    "test/test_bulk.py",
    "test/test_cursor.py",
    "test/test_database.py",
    "test/test_client.py",
    "test/test_client_bulk_write.py",
    "test/test_change_stream.py",
    "test/test_transactions.py",
    "test/test_transactions_unified.py",
    "test/test_session.py",
    "test/test_sessions_unified.py",
    "test/test_causal_consistency.py",
    "test/test_retryable_writes.py",
    "test/test_retryable_writes_unified.py",
    "test/test_retryable_reads.py",
    "test/test_retryable_reads_unified.py",
    "test/test_client_backpressure.py",
    "test/test_collation.py",
    "test/test_collection_management.py",
    "test/test_index_management.py",
    "test/test_command_monitoring.py",
    "test/test_monitoring.py",
    "test/test_run_command.py",
    "test/test_read_concern.py",
    "test/test_read_write_concern_spec.py",
    "test/test_custom_types.py",
    "test/test_raw_bson.py",
    "test/test_decimal128.py",
    "test/test_binary.py",
    "test/test_code.py",
    "test/test_dbref.py",
    "test/test_json_util_integration.py",
    "test/test_gridfs.py",
    "test/test_gridfs_bucket.py",
    "test/test_gridfs_spec.py",
    "test/test_grid_file.py",
    "test/test_comment.py",
    "test/test_examples.py",
    "test/test_streaming_protocol.py",
    "test/test_heartbeat_monitoring.py",
    "test/test_auth.py",
    "test/test_versioned_api_integration.py",
    "test/test_csot.py",
    "test/test_unified_format.py",
    "test/asynchronous/test_crud_unified.py",
    "test/asynchronous/test_collection.py",
    "test/asynchronous/test_cursor.py",
    "test/asynchronous/test_database.py",
    "test/asynchronous/test_change_stream.py",
    "test/asynchronous/test_transactions_unified.py",
    "test/asynchronous/test_session.py",
    "test/asynchronous/test_retryable_writes.py",
)
DRIVER_MARKERS = (
    "auth_aws", "auth_oidc", "auth", "ocsp", "atlas_connect", "sfp", "perf", "search_index", "kms", "encryption",
    "load_balancer", "mockupdb", "default", "default_async",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="conformance-mongo", description=__doc__)
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--server-args", default="", help="more options for `asterism serve`")
    parser.add_argument("--only", choices=("functional", "driver"), help="one of the two suites")
    parser.add_argument("--functional-tests", type=Path, help="a folder with a checkout of the functional tests")
    parser.add_argument("--sample", type=int, default=1, help="run every n-th functional test, always the same ones")
    parser.add_argument("pytest_arguments", nargs="*", help="after --: folders or files, and options of pytest")
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    python = prepare_environment()
    try:
        with store_options(options.store) as store, running_server([*store, *shlex.split(options.server_args)]) as port:
            parts = []
            if options.only != "driver":
                parts.append(("mongo", run_functional(python, port, options)))
            if options.only != "functional":
                parts.append(("pymongo", run_driver(python, port, options)))
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2
    for name, text in parts:
        # Chosen tests do not make a score.
        if options.pytest_arguments:
            print(text)
        else:
            write_part(REPORT, part_name(name, options.store), text)
    return 0


def prepare_environment() -> Path:
    python = BUILD / "venv" / "bin" / "python"
    stamp = BUILD / "venv" / f"pymongo-{PYMONGO}"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", str(BUILD / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        stamp.touch()
    return python


@contextmanager
def running_server(more_arguments: list[str]) -> Iterator[int]:
    """Yield the port of a server; the test controls are on for the driver's fail points."""
    port = free_port()
    ready = BUILD / "ready"
    ready.unlink(missing_ok=True)
    log = BUILD / "server.log"
    with tempfile.TemporaryDirectory(prefix="asterism-conformance-") as data, log.open("wb") as output:
        arguments = ["--data", data, "--apis", "mongo", "--mongo-port", str(port), "--no-throttle", "--test-controls"]
        arguments += ["--ready-file", str(ready), *more_arguments]
        process = subprocess.Popen([*START, *arguments], stdout=output, stderr=subprocess.STDOUT, cwd=PROJECT)
        try:
            wait_for(process, ready, log)
            yield port
        finally:
            stop(process)


def wait_for(process: subprocess.Popen[bytes], ready: Path, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        if ready.exists():
            return
        time.sleep(0.05)
    raise ServerNotReady(log.read_text(errors="replace")[-2000:])


def functional_checkout(folder: Path | None) -> Path:
    if folder is not None:
        return folder.resolve()
    checkout = BUILD / f"functional-tests-{FUNCTIONAL_COMMIT}"
    if not (checkout / "documentdb_tests").is_dir():
        subprocess.run(["git", "clone", "--quiet", FUNCTIONAL_REPOSITORY, str(checkout)], check=True)
        subprocess.run(["git", "-C", str(checkout), "checkout", "--quiet", FUNCTIONAL_COMMIT], check=True)
    return checkout


def run_functional(python: Path, port: int, options: argparse.Namespace) -> str:
    checkout = functional_checkout(options.functional_tests)
    results = BUILD / "functional.tsv"
    results.unlink(missing_ok=True)
    chosen = options.pytest_arguments or ["documentdb_tests/compatibility/tests"]
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-qqq", "-rN", "--tb=no", "--no-header"]
    command += ["-W", "ignore", "--timeout", str(FUNCTIONAL_SECONDS_MAX), "--timeout-method", "signal"]
    command += [f"--connection-string=mongodb://127.0.0.1:{port}/?directConnection=true", "--engine-name=asterism"]
    environment = {
        **os.environ,
        # As a variable, because the suite starts itself again for tests that must not run beside others.
        "PYTEST_PLUGINS": "conformance.mongo.functional_plugin",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(checkout)]),
        "ASTERISM_MONGO_RESULTS": str(results),
        "ASTERISM_MONGO_SAMPLE": str(options.sample),
    }
    with (BUILD / "functional.log").open("wb") as log:
        subprocess.run([*command, *chosen], cwd=checkout, env=environment, stdout=log, stderr=log, check=False)
    return functional_report(read_lines(results), options.store, options.sample)


def run_driver(python: Path, port: int, options: argparse.Namespace) -> str:
    source = driver_source(python)
    results = BUILD / "driver.tsv"
    results.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-p", "conformance.mongo.driver_plugin", "-p", "no:cacheprovider", "-q"]
    command += ["-rN", "--tb=no", "--no-header", "-W", "ignore", "--timeout", str(DRIVER_SECONDS_MAX)]
    command += ["--timeout-method", "signal", *(options.pytest_arguments or DRIVER_FILES)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(source)]),
        "ASTERISM_MONGO_RESULTS": str(results),
        "DB_IP": "127.0.0.1",
        "DB_PORT": str(port),
    }
    with (BUILD / "driver.log").open("wb") as log:
        subprocess.run(command, cwd=source, env=environment, stdout=log, stderr=log, check=False)
    return driver_report(read_lines(results), options.store)


def driver_source(python: Path) -> Path:
    """Return a folder with the tests of the driver's source distribution and nothing else of it."""
    source = BUILD / f"pymongo-{PYMONGO}-tests"
    if not (source / "test").is_dir():
        pip = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pymongo"]
        subprocess.run([*pip, "--dest", str(BUILD), f"pymongo=={PYMONGO}"], check=True)
        with tarfile.open(BUILD / f"pymongo-{PYMONGO}.tar.gz") as archive:
            head = f"pymongo-{PYMONGO}/"
            for member in archive.getmembers():
                if member.name.startswith(head + "test/"):
                    member.name = member.name.removeprefix(head)
                    archive.extract(member, source, filter="data")
    markers = "\n".join(f"    {marker}: of the driver" for marker in DRIVER_MARKERS)
    settings = f"[pytest]\nasyncio_default_fixture_loop_scope=session\nmarkers=\n{markers}\n"
    (source / "pytest.ini").write_text(settings, encoding="utf-8")
    return source


def functional_report(lines: list[Line], store: str, sample: int) -> str:
    chosen = "The tests" if sample == 1 else f"Every {sample}th of the tests"
    by_tier = [f"| {tier} | {share(line for line in lines if line.tier == tier)} |" for tier in TIERS]
    return "\n".join(
        [
            title("MongoDB: functional tests", store),
            "",
            f"{chosen} of documentdb/functional-tests at {FUNCTIONAL_COMMIT}, whose reference is MongoDB 8.2, run",
            f"against Asterism on {SHOWN[store]}. Written by `{verb('conformance-mongo', store)}`. Replies are",
            "compared with exact types and codes. The tiers are those of conformance/mongo/tiers.toml; tests of search",
            "nodes, encrypted queries and auditing are left out.",
            "",
            "| Tier | passed | run | share | skipped |",
            "|---|---:|---:|---:|---:|",
            *by_tier,
            "",
            *table("Folder", lines, lambda line: line.folder),
        ]
    )


def driver_report(lines: list[Line], store: str) -> str:
    return "\n".join(
        [
            title("MongoDB: the driver's tests", store),
            "",
            f"The tests that pymongo {PYMONGO} brings in its source distribution, as far as they need a server, run",
            f"unchanged against Asterism on {SHOWN[store]}. Written by `{verb('conformance-mongo', store)}`. Skipped",
            "tests ask for other topologies, services or versions.",
            "",
            *table("File", lines, lambda line: line.file),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
