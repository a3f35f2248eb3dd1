"""The programs that introduce a door, run as they are with the newest clients at the end of `make conformance-clients`.

Programs in Python and JavaScript, over http and https, each twice: a second time all that they create exists.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.apis.door_spec import DoorSpec, Endpoint, Snippet, Surroundings
from asterism.server.doors import DOORS
from conformance.clients.environments import Client, NotInstalled, prepare
from conformance.run import BUILD, KEY_DEFAULT
from conformance.server import ServerNotReady, free_port, running_server

RUN_SECONDS_MAX = 120.0
_KEYS = {"nosql": ("asterism", KEY_DEFAULT), "table": (DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)}
_PACKAGES = {
    "nosql": {"Python": "azure-cosmos", "JavaScript": "@azure/cosmos"},
    "table": {"Python": "azure-data-tables", "JavaScript": "@azure/data-tables"},
}


@dataclass(frozen=True)
class Outcome:
    name: str
    # None if the program printed its greeting.
    problem: str | None


def main(arguments: Sequence[str]) -> int:
    argparse.ArgumentParser(prog="conformance.clients.snippets", description=__doc__).parse_args(arguments)
    build = BUILD / "snippets"
    build.mkdir(parents=True, exist_ok=True)
    try:
        outcomes = [outcome for is_encrypted in (False, True) for outcome in run_all(build, is_encrypted=is_encrypted)]
    except (ServerNotReady, NotInstalled) as problem:
        print(problem, file=sys.stderr)
        return 2
    return 1 if any(outcome.problem for outcome in outcomes) else 0


def run_all(build: Path, *, is_encrypted: bool) -> Iterator[Outcome]:
    doors = [door for door in DOORS if door.name in _KEYS]
    specs = [spec for door in doors for spec in door.ports]
    ports = {spec.name: free_port() for spec in specs}
    more = [text for spec in specs[1:] for text in (spec.flag, str(ports[spec.name]))]
    with running_server(
        port=ports[specs[0].name],
        key=KEY_DEFAULT,
        log=build / "server.log",
        more_arguments=("--apis", ",".join(_KEYS), *more),
        is_encrypted=is_encrypted,
    ):
        endpoints = {
            name: Endpoint("127.0.0.1", port, "http", is_encrypted=is_encrypted) for name, port in ports.items()
        }
        for door in doors:
            for snippet in snippets_of(door, endpoints):
                package = _PACKAGES[door.name].get(snippet.language)
                if package is not None:
                    folder = prepare(Client(package, _newest(snippet), snippet.language.lower(), ""), build / door.name)
                    scheme = "https" if is_encrypted else "http"
                    outcome = Outcome(f"{package} over {scheme}", run_twice(snippet, folder))
                    print(f"{outcome.name}: {outcome.problem or 'good'}", flush=True)
                    yield outcome


def snippets_of(door: DoorSpec[object], endpoints: dict[str, Endpoint]) -> Sequence[Snippet]:
    account, key = _KEYS[door.name]
    server = Surroundings(endpoints, is_local=True, account=account, key=key, key_is_public=True)
    return [] if door.introduce is None else door.introduce(door.settings(), server, account, key).snippets


def _newest(snippet: Snippet) -> str:
    return "@latest" if snippet.language == "JavaScript" else ""


def run_twice(snippet: Snippet, folder: Path) -> str | None:
    """Return the reason why a program does not print its greeting, or None."""
    is_python = snippet.language == "Python"
    file = folder / ("first-steps.py" if is_python else "first-steps.mjs")
    file.write_text(snippet.code, encoding="utf-8")
    program = str(folder / "bin" / "python") if is_python else "node"
    for _ in range(2):
        try:
            finished = subprocess.run(
                [program, str(file)],
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not finished after {RUN_SECONDS_MAX:.0f} s"
        if finished.returncode or finished.stdout != f"Hello from {snippet.language}\n":
            return f"ended with {finished.returncode}: {(finished.stderr or finished.stdout)[-300:].strip()}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
