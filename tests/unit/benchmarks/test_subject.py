"""The checkout that a benchmark measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.subject import PROJECT, NoCheckout, Subject, checkout, other_checkout

# A package whose `serve` has an option that ours has not, and lacks others.
PROGRAM = 'print("--data DIR  --older NAME")'


def git(folder: Path, *arguments: str) -> str:
    options = ["-c", "user.name=t", "-c", "user.email=t@example.test", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *options, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_package(folder: Path, *, version: str) -> None:
    package = folder / "asterism"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(f"VERSION = {version!r}\n")
    (package / "__main__.py").write_text(PROGRAM)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    make_package(folder, version="older")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "older")
    make_package(folder, version="newer")
    git(folder, "commit", "--quiet", "-a", "-m", "newer")
    return folder


def version_of(subject: Subject) -> str:
    """The version that a process started for the checkout imports, with the project as its current folder."""
    command = [sys.executable, "-c", "import asterism; print(asterism.VERSION)"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=PROJECT, env=subject.environment, timeout=60
    )
    return done.stdout.strip()


def test_python_path_decides_which_package_a_process_imports(tmp_path: Path) -> None:
    make_package(tmp_path, version="of the folder")
    subject = checkout(tmp_path)
    subject.check()
    assert version_of(subject) == "of the folder"


def test_a_checkout_whose_package_is_not_the_one_imported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCheckout, match="is imported from"):
        Subject(tmp_path, "empty").check()


def test_a_commit_is_measured_in_a_worktree_that_is_removed_afterwards(repository: Path) -> None:
    with other_checkout("HEAD~1", project=repository) as subject:
        folder = subject.folder
        assert version_of(subject) == "older"
        assert subject.label == git(repository, "rev-parse", "--short", "HEAD~1")
    assert not folder.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_the_worktree_is_removed_when_a_case_fails(repository: Path) -> None:
    with pytest.raises(RuntimeError), other_checkout("HEAD", project=repository):
        raise RuntimeError
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_folder_is_measured_as_it_is(repository: Path) -> None:
    make_package(repository, version="changed")
    with other_checkout(str(repository)) as subject:
        assert version_of(subject) == "changed"
        assert subject.label == f"{git(repository, 'rev-parse', '--short', 'HEAD')} with changes"
    assert repository.exists()


def test_a_name_of_nothing_is_refused(repository: Path) -> None:
    with (
        pytest.raises(NoCheckout, match="neither a folder nor a commit"),
        other_checkout("nowhere", project=repository),
    ):
        pass


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCheckout, match="has no package asterism"):
        checkout(tmp_path)


def test_options_that_the_checkout_does_not_know_are_left_out(tmp_path: Path) -> None:
    make_package(tmp_path, version="older")
    arguments = checkout(tmp_path).known(("--data", "d"), ("--apis", "nosql"), ("--older", None))
    assert arguments == ["--data", "d", "--older"]
