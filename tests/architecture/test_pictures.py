"""The pictures of docs/pictures are those that the script makes, and show the tree as it is."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from scripts.blob_pictures import PICTURES as BLOB_PICTURES
from scripts.pattern_pictures import PICTURES as PATTERN_PICTURES
from scripts.pictures import ENGINES, FLOORS, FOLDER
from scripts.pictures import PICTURES as DIAGRAMS
from scripts.screenshots import PICTURES as SCREENSHOTS
from tests.architecture.test_floors import FLOOR_OF_UNIT, PACKAGE, PROJECT

PICTURES = {**DIAGRAMS, **PATTERN_PICTURES, **BLOB_PICTURES}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PICTURES[name](), "run `make pictures`"


def test_every_picture_is_made_by_a_script() -> None:
    drawn_and_taken = [*PICTURES, *(picture.name for picture in SCREENSHOTS)]
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(drawn_and_taken)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_has_a_title_and_a_description(name: str) -> None:
    root = ElementTree.fromstring(PICTURES[name]())
    named = set(root.attrib["aria-labelledby"].split())
    assert {element.attrib["id"] for element in root if element.tag in (f"{SVG}title", f"{SVG}desc")} == named
    assert all(element.text for element in root if element.tag in (f"{SVG}title", f"{SVG}desc"))


def test_the_picture_has_the_rooms_of_the_tree_on_their_floors() -> None:
    in_picture = {room.replace("/", "."): floor.number for floor in FLOORS for room in floor.rooms}
    assert {unit: FLOOR_OF_UNIT[unit] for unit in in_picture} == in_picture
    folders = {path.name for path in (PROJECT / PACKAGE).iterdir() if (path / "__init__.py").exists()}
    assert folders == {unit.split(".")[0] for unit in in_picture} - {"errors", "clock", "limits", "metrics"}
    doors = {path.parent.name for path in (PROJECT / PACKAGE / "apis").glob("*/spec.py")}
    assert doors == {unit.removeprefix("apis.") for unit in in_picture if unit.startswith("apis.")}


def test_the_picture_has_the_engines_of_the_tree() -> None:
    storage = PROJECT / PACKAGE / "storage"
    assert {path.parent.name for path in storage.glob("*/__init__.py")} == {
        {"PostgreSQL": "postgres"}.get(engine, engine.lower()) for engine in ENGINES
    }
