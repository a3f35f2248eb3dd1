"""`make conformance-clients`: install clients of several ages, run the same checks with each, write the table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.clients.environments import CLIENTS, Client, NotInstalled, command_of, environment_of, prepare
from conformance.document import write_part
from conformance.run import BUILD, KEY_DEFAULT, REPORT
from conformance.server import ServerNotReady, free_port, running_server
from conformance.stores import LMDB, SHOWN, STORES, part_name, store_options, verb

CHECK_SECONDS_MAX = 600.0
CHECKS = (
    "items",
    "ids",
    "patch, batch, scripts",
    "filter",
    "ORDER BY",
    "aggregates",
    "DISTINCT",
    "TOP",
    "OFFSET LIMIT",
    "pages",
    "split while paging",
    "change feed",
)
OK = "ok"


@dataclass(frozen=True)
class Row:
    """The outcome of a client: its version as it reports it, and for each check "ok" or the error."""

    client: Client
    version: str
    outcomes: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.client.package} {self.version}" + (f", {self.client.kind}" if self.client.kind else "")

    @property
    def is_good(self) -> bool:
        return all(self.outcomes.get(check) == OK for check in CHECKS)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="conformance.clients", description=__doc__)
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--only", default="", help="run clients whose package, version or language holds this text")
    options = parser.parse_args(arguments)
    build = BUILD / "clients"
    build.mkdir(parents=True, exist_ok=True)
    chosen = [client for client in CLIENTS if options.only in f"{client.language} {client.package}{client.wanted}"]
    log = build / "server.log"
    try:
        with (
            store_options(options.store) as store,
            running_server(
                port=free_port(), key=KEY_DEFAULT, log=log, more_arguments=(*store, "--no-throttle")
            ) as endpoint,
        ):
            rows = [run_client(client, build, endpoint=endpoint, key=KEY_DEFAULT) for client in chosen]
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2
    text = report(rows, options.store)
    if options.only:
        print(text)
    else:
        write_part(REPORT, part_name("clients", options.store), text)
    return 0 if rows and all(row.is_good for row in rows) else 1


def run_client(client: Client, build: Path, *, endpoint: str, key: str) -> Row:
    try:
        folder = prepare(client, build)
        row = check(client, folder, endpoint=endpoint, key=key)
    except NotInstalled as problem:
        row = Row(client, client.wanted.strip("=@") or "newest", dict.fromkeys(CHECKS, f"not installed: {problem}"))
    print(f"{row.name}: {'good' if row.is_good else row.outcomes}", flush=True)
    return row


def check(client: Client, folder: Path, *, endpoint: str, key: str) -> Row:
    command = command_of(client, folder, endpoint=endpoint, key=key)
    try:
        finished = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=CHECK_SECONDS_MAX,
            check=False,
            env=environment_of(client),
        )
        reply = json.loads(finished.stdout.strip().splitlines()[-1])
        return Row(client, reply["version"], reply["checks"])
    except subprocess.TimeoutExpired:
        problem = f"not finished after {CHECK_SECONDS_MAX:.0f} s"
    except (ValueError, IndexError):
        problem = f"ended with {finished.returncode}: {finished.stderr[-300:].strip()}"
    return Row(client, client.wanted.strip("=@") or "newest", dict.fromkeys(CHECKS, problem))


def report(rows: Sequence[Row], store: str) -> str:
    heading = "## Clients of several ages" + ("" if store == LMDB else f" on {SHOWN[store]}")
    lines = [
        heading,
        "",
        "The same checks with official clients of several ages, each installed by its package's name into a folder of",
        f"its own, against Asterism over https, on {SHOWN[store]}. Written by `{verb('conformance-clients', store)}`;",
        "the checks are conformance/clients/check_python.py and check_javascript.js. Queries are over two partitions;",
        "the split happens between two pages of a query without and of one with ORDER BY. What a client does not have",
        "(patches and batches in the oldest) is left out of its checks.",
        "",
        f"| Client | {' | '.join(CHECKS)} |",
        f"|---|{'---|' * len(CHECKS)}",
    ]
    for row in rows:
        cells = ["yes" if row.outcomes.get(name) == OK else "**no**" for name in CHECKS]
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    problems = [
        f"- {row.name}, {name}: {outcome}" for row in rows for name, outcome in row.outcomes.items() if outcome != OK
    ]
    return "\n".join([*lines, *(["", "What went wrong:", "", *problems] if problems else [])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
