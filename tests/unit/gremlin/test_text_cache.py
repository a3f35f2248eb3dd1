"""The cache of parsed scripts."""

from __future__ import annotations

import pytest

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.text.cache import ParseCache
from asterism.languages.gremlin.text.parser import parse

NO_NAMES: frozenset[str] = frozenset()


def test_a_script_is_parsed_once() -> None:
    cache = ParseCache(parse)
    assert cache.get("g.V()", NO_NAMES) is cache.get("g.V()", NO_NAMES)


def test_the_names_of_bindings_are_part_of_the_key() -> None:
    cache = ParseCache(parse)
    with_constant = cache.get("g.V().by(id)", NO_NAMES)
    with_variable = cache.get("g.V().by(id)", frozenset({"id"}))
    assert with_constant != with_variable
    assert len(cache) == 2


def test_the_script_unused_for_longest_leaves_first() -> None:
    made: list[str] = []

    def make(text: str, _: frozenset[str]) -> str:
        made.append(text)
        return text

    cache = ParseCache(make, entries_max=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cache.get(text, NO_NAMES)
    assert made == ["a", "b", "c", "b"]


def test_the_bytes_of_texts_and_names_are_bounded() -> None:
    cache = ParseCache(lambda text, _: text, text_bytes_max=100)
    for number in range(50):
        cache.get(f"{number:010}", frozenset({"name"}))
    assert len(cache) == 7
    assert cache.text_bytes == 98


def test_a_text_larger_than_the_cache_is_not_kept() -> None:
    cache = ParseCache(lambda text, _: text, text_bytes_max=10)
    assert cache.get("x" * 11, NO_NAMES) == "x" * 11
    assert len(cache) == 0
    assert cache.text_bytes == 0


def test_refusals_are_not_kept() -> None:
    cache = ParseCache(parse)
    for _ in range(2):
        with pytest.raises(CompileFailure):
            cache.get("g.V(", NO_NAMES)
    assert len(cache) == 0
