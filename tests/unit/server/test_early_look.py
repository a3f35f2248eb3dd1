"""A look through test files for those that will need a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.testing.early_look import any_names_a_fixture


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_it(asterism): ...", True),
        ("async def test_it(tmp_path, asterism_server) -> None: ...", True),
        ("def client(\n    asterism_factory: object,\n): ...", True),
        ("@pytest.mark.usefixtures('asterism')\ndef test_it(): ...", True),
        ("from asterism.testing import Server", False),
        ("import asterism", False),
        ("def test_it(asterism_like): ...", False),
        ("name = 'asterism'", False),
    ],
)
def test_a_fixture_is_seen_in_the_source(tmp_path: Path, source: str, expected: bool) -> None:
    folder = tmp_path / "tests" / "deep"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(source)
    assert any_names_a_fixture([tmp_path]) is expected
    assert any_names_a_fixture([folder / "test_it.py"]) is expected


def test_other_files_and_folders_are_not_read(tmp_path: Path) -> None:
    hidden = tmp_path / ".venv"
    hidden.mkdir()
    for path in (hidden / "test_it.py", tmp_path / "program.py", tmp_path / "notes.txt"):
        path.write_text("def test_it(asterism): ...")
    assert not any_names_a_fixture([tmp_path, tmp_path / "absent"])
