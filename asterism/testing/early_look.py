"""A quick look through test files, before pytest collects them, for tests that will need a server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# A fixture as an argument of a test or of another fixture, or in `usefixtures`.
_ARGUMENT = re.compile(rb"(?:[(,]\s*|usefixtures\([^)]*[\"'])asterism(?:_server|_factory)?[\"']?\s*[,):]")
_TEST_FILE = re.compile(r"conftest\.py|test_.*\.py|.*_test\.py")
# Larger projects take longer to collect than a server to load: for them the look of the collection comes in time.
FILES_MAX = 100
FOLDERS_MAX = 100
# Folders with these beginnings hold no tests of a project.
_SKIPPED = (".", "_", "node_modules", "venv", "build", "dist")


def names_a_fixture(path: Path) -> bool:
    """Return whether a module has an argument that is a fixture for servers."""
    try:
        return _ARGUMENT.search(path.read_bytes()) is not None
    except OSError:
        return False


def any_names_a_fixture(paths: Iterable[Path]) -> bool:
    """Return whether one of the first test files below the paths does."""
    return any(names_a_fixture(path) for _, path in zip(range(FILES_MAX), _test_files(paths), strict=False))


def _test_files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_file():
            yield path
            continue
        for _, (folder, folders, files) in zip(range(FOLDERS_MAX), os.walk(path), strict=False):
            folders[:] = sorted(name for name in folders if not name.startswith(_SKIPPED))
            yield from (Path(folder, name) for name in sorted(files) if _TEST_FILE.fullmatch(name))
