"""`make conformance-gremlin`: run TinkerPop's own scenarios against Asterism, write the scores.

The scenarios come from the public repository of TinkerPop, or from a folder with a checkout of it; nothing of them is
kept in the project.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.document import write_part
from conformance.gremlin.graphs import create_graphs
from conformance.server import START, ServerNotReady, free_port, stop, wait_until_ready
from conformance.stores import LMDB, SHOWN, STORES, part_name, store_options, verb

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "conformance-gremlin"
REPORT = PROJECT / "docs" / "conformance.md"

REPOSITORY = "https://github.com/apache/tinkerpop"
BRANCH = "3.8-dev"
CLIENT = "gremlinpython==3.8.2"
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
# The files of the checkout that are read: scenarios, their traversals in Python, and the toy graphs.
WANTED = (".feature", "python/tests/feature/gremlin.py", "python/radish/gremlin.py")
TOY_GRAPHS = ("tinkerpop-modern-v3", "tinkerpop-crew-v3", "tinkerpop-sink-v3", "grateful-dead-v3")

# Name of a run, its title, and the options of the judge.
RUNS = {
    "text": ("Texts with bindings, GraphBinary", ("--mode", "text")),
    "bytecode": ("Bytecode of gremlinpython, GraphBinary", ("--mode", "bytecode")),
    "partitioned": ("Scenarios that make their own graph, each vertex with a key", ("--partition-key", "pk")),
    "graphson": ("Texts with bindings, GraphSON 3", ("--wire", "graphson3")),
}
OUTCOMES = ("pass", "order", "raised", "fail", "error", "skip")
COUNTED = OUTCOMES[:3]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="conformance-gremlin", description=__doc__)
    parser.add_argument("--store", choices=STORES, default=LMDB, help="what the server keeps its data in")
    parser.add_argument("--server-args", default="", help="more options for `asterism serve`")
    parser.add_argument("--checkout", type=Path, help="a git folder of TinkerPop (default: downloaded)")
    parser.add_argument("--only", choices=tuple(RUNS), help="one of the runs")
    parser.add_argument("judge_arguments", nargs="*", help="after --: options of the judge, such as --only map/Order")
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    python = prepare_environment()
    files = prepare_files(options.checkout)
    names = [options.only] if options.only else list(RUNS)
    try:
        with store_options(options.store) as store, running_server([*store, *shlex.split(options.server_args)]) as url:
            sections = [run(python, files, url, name, options, is_first=name == names[0]) for name in names]
    except ServerNotReady as problem:
        print(problem, file=sys.stderr)
        return 2
    # Chosen scenarios do not make a score.
    if not options.judge_arguments and not options.only:
        write_part(REPORT, part_name("gremlin", options.store), "\n".join([*head(options.store, files), *sections]))
    return 0


def prepare_environment() -> Path:
    python = BUILD / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(BUILD / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", CLIENT], check=True)
    return python


def prepare_files(checkout: Path | None) -> Path:
    """Take the files that are read out of the repository; return their folder, named by the commit."""
    if checkout is None:
        checkout = BUILD / "tinkerpop.git"
        if not checkout.exists():
            command = ["git", "clone", "--quiet", "--bare", "--depth", "1", "--branch", BRANCH, REPOSITORY]
            subprocess.run([*command, str(checkout)], check=True)
    git = ["git", f"--git-dir={checkout / '.git' if (checkout / '.git').is_dir() else checkout}"]
    commit = subprocess.check_output([*git, "rev-parse", "--short", BRANCH], text=True).strip()
    folder = BUILD / f"tinkerpop-{commit}"
    if not folder.exists():
        listing = subprocess.check_output([*git, "ls-tree", "-r", "--name-only", commit], text=True).splitlines()
        with tempfile.TemporaryDirectory(dir=BUILD) as made:
            for path in filter(is_wanted, listing):
                target = Path(made, "files", path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(subprocess.check_output([*git, "show", f"{commit}:{path}"]))
            Path(made, "files").rename(folder)
    return folder


def is_wanted(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return path.endswith(WANTED) or (name.startswith(TOY_GRAPHS) and name.endswith(".json"))


@contextmanager
def running_server(more_arguments: list[str]) -> Iterator[str]:
    """Start a server with the graphs of the scenarios; yield the address for websockets."""
    nosql_port, gremlin_port = free_port(), free_port()
    ports = ["--port", str(nosql_port), "--gremlin-port", str(gremlin_port), "--apis", "nosql,gremlin"]
    log = BUILD / "server.log"
    with tempfile.TemporaryDirectory(prefix="asterism-conformance-") as data, log.open("wb") as output:
        command = [*START, "--data", data, *ports, "--key", KEY, "--no-throttle", *more_arguments]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until_ready(process, port=nosql_port, log=log, is_encrypted=False)
            create_graphs(f"http://127.0.0.1:{nosql_port}", KEY)
            yield f"ws://127.0.0.1:{gremlin_port}/"
        finally:
            stop(process)


def run(python: Path, files: Path, url: str, name: str, options: argparse.Namespace, *, is_first: bool) -> str:
    title, judge_options = RUNS[name]
    report = BUILD / f"{name}.jsonl"
    command = [str(python), "-m", "conformance.gremlin.judge", str(files), "--url", url]
    command += ["--user", "/dbs/tinkerpop/colls/{graph}", "--password", KEY, "--report", str(report), *judge_options]
    command += (["--load"] if is_first else []) + options.judge_arguments
    print(f"{title}:", flush=True)
    subprocess.run(command, cwd=PROJECT, check=True)
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for line in report.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        tally[found["scenario"].split("/")[0]][found["outcome"]] += 1
    return "\n".join(["", f"### {title}", "", *table(tally)])


def table(tally: dict[str, Counter[str]]) -> list[str]:
    total: Counter[str] = sum(tally.values(), Counter())
    rows = [
        f"| {folder} | {score(counts)} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |"
        for folder, counts in (*sorted(tally.items()), ("**all**", total))
    ]
    heads = " | ".join(OUTCOMES)
    return [f"| folder | score | {heads} |", f"|---|---:|{'---:|' * len(OUTCOMES)}", *rows]


def score(counts: Counter[str]) -> str:
    judged = sum(counts.values()) - counts["skip"]
    good = sum(counts[outcome] for outcome in COUNTED)
    return f"{good} of {judged} ({100 * good / judged:.1f} %)" if judged else "-"


def head(store: str, files: Path) -> list[str]:
    return [
        "## Gremlin: TinkerPop's scenarios",
        "",
        f"The scenarios of TinkerPop {BRANCH} at {files.name.removeprefix('tinkerpop-')}, asked with {CLIENT} against",
        f"Asterism on {SHOWN[store]}. Written by `{verb('conformance-gremlin', store)}`. *order* is right but",
        "for the order inside a list, *raised* an error that was due, in other words than TinkerPop's; both count.",
        "Skipped are scenarios that need a graph computer, files of the server, lambdas, or values that JSON lacks",
        "(conformance/gremlin/subset.py has every reason).",
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
