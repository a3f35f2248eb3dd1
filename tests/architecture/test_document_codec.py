"""The core of the documents floor knows no protocol: it speaks to items through a codec, and to settings as a type."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from asterism.models.documents.cosmos.properties import RESERVED_PROPERTIES, TTL
from tests.architecture.test_floors import MODULES, Module, imported_names, read_module

ROOM = "models.documents"
PROFILE = "models.documents.cosmos"
# The form of values, which only a profile's modules know.
FORMATS = ("asterism.values.json", "asterism.values.item")


def is_core(module: Module) -> bool:
    return is_in(module.name, ROOM) and not is_in(module.name, PROFILE)


def is_in(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def formats_imported(module: Module) -> list[str]:
    if not is_core(module):
        return []
    return [
        f"{module.where(node)} imports {name}"
        for node, name in imported_names(module)
        if any(is_in(name, known) for known in FORMATS)
    ]


def profiles_imported(module: Module) -> list[str]:
    if not is_core(module):
        return []
    return [
        f"{module.where(node)} imports {name}"
        for node, name in imported_names(module)
        if is_in(name, f"asterism.{PROFILE}")
    ]


def properties_named(module: Module) -> list[str]:
    """A property by its name alone, or by its name in JSON text."""
    if not is_core(module):
        return []
    names = RESERVED_PROPERTIES | {TTL}
    quoted = [f'"{name}":' for name in names]
    offences = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if text in names or any(name in text for name in quoted):
                offences.append(f"{module.where(node)} names the property {text[:40]!r}")
    return offences


@pytest.mark.parametrize("find", [formats_imported, profiles_imported, properties_named])
def test_the_core_knows_no_protocol(find: Callable[[Module], list[str]]) -> None:
    assert [offence for module in MODULES for offence in find(module)] == []


@pytest.mark.parametrize(
    ("find", "name", "source"),
    [
        (formats_imported, "models.documents.planner", "from asterism.values.json.text import dumps"),
        (formats_imported, "models.documents.rekey.copier", "from asterism.values import item"),
        (profiles_imported, "models.documents.store", "from asterism.models.documents.cosmos.profile import Profile"),
        (profiles_imported, "models.documents.changes.feed", "from ..cosmos import codec"),
        (properties_named, "models.documents.planner", "item['_ts'] = 1"),
        (properties_named, "models.documents.planner", "found = body.find(b'\"_ts\":')"),
    ],
)
def test_an_offence_is_noticed(find: Callable[[Module], list[str]], name: str, source: str) -> None:
    assert len(find(read_module(name, source))) == 1


@pytest.mark.parametrize(
    ("find", "name", "source"),
    [
        (formats_imported, "models.documents.cosmos.codec", "from asterism.values.json.text import dumps"),
        (profiles_imported, "models.documents.cosmos.profile", "from asterism.models.documents.cosmos import codec"),
        (properties_named, "models.documents.cosmos.codec", "item['_ts'] = 1"),
        (properties_named, "apis.nosql.resources.users", "user['id'] = 1"),
    ],
)
def test_profiles_and_doors_are_left_alone(find: Callable[[Module], list[str]], name: str, source: str) -> None:
    assert find(read_module(name, source)) == []
