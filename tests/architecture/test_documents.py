"""The documents name only files that exist, and the architecture names every package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "asterism"
ARCHITECTURE = PROJECT / "docs" / "ARCHITECTURE.md"
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PACKAGE.rglob("*.md")])
# `keyspaces/reshaping/job.py`, `scripts/replica-set.sh`, and a module's bare name after its package was named.
FILE = re.compile(r"`([\w./-]+\.(?:py|js|sh|md))`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
# `keyspaces/routing/router` and `keyspaces.routing.router.Reads`, as the architecture writes modules in passing.
MODULE = re.compile(r"`((?:[a-z_]+[./])+\w+)`")


def file_exists(name: str, document: Path) -> bool:
    roots = (PROJECT, PACKAGE, document.parent)
    return any((root / name).exists() for root in roots) or ("/" not in name and any(PACKAGE.rglob(name)))


def is_module(name: str) -> bool:
    """Return True if a module has this name, or the name without its last part, a function or class."""
    parts = re.split(r"[./]", name)
    paths = [PACKAGE.joinpath(*parts[:length]) for length in range(len(parts), 0, -1)]
    return any(path.is_dir() or path.with_suffix(".py").exists() for path in paths[:2])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = [*FILE.findall(text), *LINK.findall(text)]
    assert [name for name in named if not file_exists(name, document)] == []


def test_every_module_that_the_architecture_names_exists() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    named = [name for name in MODULE.findall(ARCHITECTURE.read_text()) if re.split(r"[./]", name)[0] in packages]
    assert named
    assert [name for name in named if not name.endswith(".py") and not is_module(name)] == []


def test_the_architecture_has_every_package_in_its_table() -> None:
    rows = [line for line in ARCHITECTURE.read_text().splitlines() if re.match(r"\| \d \|", line)]
    packages = [path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    in_table = set(re.findall(r"`([\w/]+)`", "\n".join(rows)))

    def is_named(package: str) -> bool:
        """Accept a package in the table, a sub-room of one, and a folder that only gathers packages."""
        parts = package.split("/")
        rooms = {"/".join(parts[:length]) for length in range(1, len(parts) + 1)} | {parts[-1]}
        return bool(rooms & in_table) or any(name.startswith(f"{package}/") for name in in_table)

    assert sorted(name for name in map(str, packages) if not is_named(name)) == []


# Rooms whose invariants are all cited by tests, as in `# R1 of asterism/reading/DESIGN.md.`
CITED_ROOMS = ("keyspaces", "models/tables", "reading", "server", "storage/postgres")


@pytest.mark.parametrize("room", CITED_ROOMS)
def test_the_invariants_of_a_room_are_those_that_tests_cite(room: str) -> None:
    design = f"{PACKAGE.name}/{room}/DESIGN.md"
    stated = re.findall(r"^- \*\*([A-Z]\d+)\*\*", (PROJECT / design).read_text(encoding="utf-8"), re.MULTILINE)
    citation = re.compile(rf"^# ([A-Z]\d+) of {re.escape(design)}\.$", re.MULTILINE)
    tests = (PROJECT / "tests").rglob("test_*.py")
    cited = {name for test in tests for name in citation.findall(test.read_text(encoding="utf-8"))}
    assert stated
    assert sorted(cited) == sorted(stated)
