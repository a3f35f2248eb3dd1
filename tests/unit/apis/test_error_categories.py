"""Every error has a category, and every door translates every category: a new error needs no change in a door."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from asterism.apis.translation import Translation
from asterism.errors import AsterismError, Category, ItemNotFound, Throttled
from tests.unit.apis.error_answers import DOORS, all_errors

# The reason of an error that a client must not see: it may name hosts and files behind the server.
HIDDEN = frozenset({Category.UNAVAILABLE, Category.INTERNAL})


def new_error(of: Category) -> AsterismError:
    """An error that no door has heard of."""

    @dataclass(eq=False)
    class NewError(AsterismError):
        text: ClassVar[str] = "Something new."
        category: ClassVar[Category] = of
        reason: str = "node-7.internal"

    @dataclass(eq=False)
    class NewThrottled(Throttled):
        text: ClassVar[str] = "Something new."

    return NewThrottled(retry_after_seconds=1.0) if of is Category.THROTTLED else NewError()


def pairs() -> Iterator[tuple[str, Category]]:
    yield from ((door, category) for door in DOORS for category in Category)


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_category(kind: type[AsterismError]) -> None:
    assert isinstance(kind.category, Category)


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_an_error_of_a_spent_budget_knows_when_to_try_again(kind: type[AsterismError]) -> None:
    assert (kind.category is Category.THROTTLED) == issubclass(kind, Throttled)


def test_an_error_without_a_category_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="needs a category"):
        type("Nameless", (AsterismError,), {})


@pytest.mark.parametrize(("door", "category"), list(pairs()), ids=str)
def test_a_new_error_is_answered_by_its_category_at_every_door(door: str, category: Category) -> None:
    answer = DOORS[door](new_error(category))
    assert 400 <= answer.get("status", answer.get("statusCode")) < 600


@pytest.mark.parametrize("door", ["nosql", "nosql batch", "table"])
@pytest.mark.parametrize("category", sorted(HIDDEN, key=str), ids=str)
def test_clients_do_not_see_why_the_server_itself_failed(door: str, category: Category) -> None:
    assert "node-7" not in str(DOORS[door](new_error(category)))


@pytest.mark.parametrize("door", list(DOORS))
def test_a_new_error_says_why_a_request_is_malformed(door: str) -> None:
    assert "node-7" in str(DOORS[door](new_error(Category.MALFORMED)))


def test_a_table_without_a_row_for_a_category_cannot_be_made() -> None:
    rows = {category: category.name for category in Category if category is not Category.FULL}
    with pytest.raises(ValueError, match="FULL"):
        Translation(rows, {})


def test_an_error_is_found_by_itself_by_its_root_and_by_its_category() -> None:
    by_category = {category: category.name for category in Category}
    translation = Translation(by_category, {ItemNotFound: "own", Throttled: "root"})
    assert translation.row(ItemNotFound(item_id="i")) == "own"
    assert translation.row(new_error(Category.THROTTLED)) == "root"
    assert translation.row(new_error(Category.FULL)) == "FULL"
