"""The checkout under measurement: PYTHONPATH decides which package the processes of a case import."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]

COMMAND_SECONDS_MAX = 30.0
LISTED_BLOBS = 1_000_000
BACKLOG = 1_000_000


class NoCheckout(Exception):
    """A name for a checkout that names neither a folder nor a commit, and the reason."""


@dataclass(frozen=True)
class Subject:
    """A checkout, named by its commit.

    Cases start servers by `command` with the `environment`. The interpreter and its packages are those of this
    process for every checkout, so that two of them differ in their own code alone.
    """

    folder: Path
    label: str
    # Beside another checkout. Cases leave out peers and large fills then: they take longer than both, and say nothing
    # about the difference.
    is_compared: bool = False
    # Of the case for queues and blobs.
    listed_blobs: int = LISTED_BLOBS
    # Messages and events that wait, in the case for AMQP.
    backlog: int = BACKLOG

    @property
    def environment(self) -> dict[str, str]:
        """Without the safe path, a module in the current folder would go before those of PYTHONPATH."""
        return {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1"}

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "asterism", "serve"]

    def check(self) -> None:
        """Raise NoCheckout unless a process with the environment imports the package of the checkout."""
        found = _output([sys.executable, "-c", "import asterism; print(asterism.__file__)"], self)
        if not Path(found).resolve().is_relative_to(self.folder.resolve() / "asterism"):
            raise NoCheckout(f"the package of {self.label} is imported from {found}, not from {self.folder}")

    def known(self, *pairs: tuple[str, str | None]) -> list[str]:
        """Return the arguments for those options that the checkout's `serve` has; others it does without."""
        offered = _options_of_serve(self)
        return [text for name, value in pairs if name in offered for text in (name, value) if text is not None]


@cache
def _options_of_serve(subject: Subject) -> frozenset[str]:
    return frozenset(word for word in _output([*subject.command, "--help"], subject).split() if word.startswith("--"))


def _output(command: list[str], subject: Subject) -> str:
    # As wide as that, no name of an option is cut.
    environment = subject.environment | {"COLUMNS": "200", "TERM": "dumb"}
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, env=environment
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
        raise NoCheckout(f"{subject.label} in {subject.folder} does not run: {problem}") from problem
    return done.stdout.strip()


# --- naming checkouts -------------------------------------------------------------------------------------------------


def checkout(folder: Path, *, is_compared: bool = False) -> Subject:
    """A folder that holds the package, named by the commit it has checked out."""
    folder = folder.resolve()
    if not (folder / "asterism" / "__init__.py").is_file():
        raise NoCheckout(f"{folder} has no package asterism. Give the top folder of a checkout.")
    return Subject(folder, _label(folder), is_compared)


def _label(folder: Path) -> str:
    try:
        commit = _git(folder, "rev-parse", "--short", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--", "asterism")
    except NoCheckout:
        return folder.name
    return f"{commit} with changes" if changes else commit


@contextmanager
def other_checkout(name: str, *, project: Path = PROJECT) -> Iterator[Subject]:
    """A folder as it is, or a commit in a temporary worktree that is removed at the end."""
    if Path(name).is_dir():
        yield checkout(Path(name), is_compared=True)
        return
    try:
        commit = _git(project, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except NoCheckout:
        raise NoCheckout(f"{name!r} is neither a folder nor a commit of {project}") from None
    with tempfile.TemporaryDirectory(prefix="asterism-bench-") as temporary:
        folder = Path(temporary) / "checkout"
        _git(project, "worktree", "add", "--detach", str(folder), commit)
        try:
            yield checkout(folder, is_compared=True)
        finally:
            _git(project, "worktree", "remove", "--force", str(folder))


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
        raise NoCheckout(f"git {arguments[0]} failed in {folder}: {problem}") from problem
    return done.stdout.strip()
