"""The libraries that are shipped with the portal: exact versions, licenses, and nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

from asterism.languages.cosmos_sql.functions import FUNCTIONS
from scripts.portal_libraries import FOLDER, LICENSES, LIST, PACKAGES

LIBRARIES = json.loads(LIST.read_text(encoding="utf-8"))
# Functions that run as part of a clause or of a group, not for a value.
CLAUSE_FUNCTIONS = {"AVG", "COUNT", "MAX", "MIN", "SUM", "RRF", "FULLTEXTSCORE", "VECTORDISTANCE"}


def test_every_file_belongs_to_a_library_in_the_list() -> None:
    files = {path.name for path in FOLDER.iterdir()} - {LIST.name, LICENSES.name}
    assert files == {name for library in LIBRARIES for name in library["files"]}


def test_the_list_has_the_versions_that_the_script_asks_for() -> None:
    assert {library["name"]: library["version"] for library in LIBRARIES} == PACKAGES


def test_every_library_has_the_text_of_its_license() -> None:
    text = LICENSES.read_text(encoding="utf-8")
    sections = re.split(r"^=+\n(.+) \(MIT\): .+\n=+\n", text, flags=re.MULTILINE)
    titles, bodies = sections[1::2], sections[2::2]
    assert titles == [f"{library['name']} {library['version']}" for library in LIBRARIES]
    assert [
        title for title, body in zip(titles, bodies, strict=True) if "Permission is hereby granted" not in body
    ] == []


def test_the_editor_knows_the_functions_that_the_server_has() -> None:
    words = (Path(FOLDER).parent / "query_words.js").read_text(encoding="utf-8")
    declared = words.split("export const FUNCTIONS =")[1]
    names = {name.upper() for part in re.findall(r'"([^"]+)"', declared) for name in part.split()}
    assert names - CLAUSE_FUNCTIONS == {name for name in FUNCTIONS if not name.startswith("_")}
