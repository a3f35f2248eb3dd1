from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.resource_ids import (
    CHILD_NUMBER_LIMIT,
    OWNED_NUMBER_LIMIT,
    ChildKind,
    DocumentLinks,
    child_kind,
    child_number,
    child_rid,
    collection_rid,
    from_text,
    permission_rid,
    pkrange_rid,
    self_link_of_child,
    self_link_of_collection,
    self_link_of_database,
    self_link_of_offer,
    self_link_of_permission,
    self_link_of_user,
    to_text,
    user_rid,
)

databases = st.binary(min_size=4, max_size=4)
owned_numbers = st.integers(0, OWNED_NUMBER_LIMIT - 1)
child_numbers = st.integers(0, CHILD_NUMBER_LIMIT - 1)

DATABASE = b"\x07\x00\x00\x00"
COLLECTION = collection_rid(DATABASE, 300)
USER = user_rid(DATABASE, 300)


def _is_of_a_container(rid: bytes) -> bool:
    return rid[4] & 0x80 != 0


@given(st.binary(min_size=1, max_size=24))
def test_an_id_comes_back_from_its_text_which_fits_in_a_path(rid: bytes) -> None:
    text = to_text(rid)
    assert "/" not in text
    assert from_text(text) == rid


@pytest.mark.parametrize("text", ["a", "not base64!", "AAAAAB==", "AAAA AA==", "é", "AAAAAA=", "ab/d"])
def test_other_texts_are_not_ids(text: str) -> None:
    assert from_text(text) is None


def test_the_empty_text_is_not_an_id() -> None:
    assert from_text("") is None


def test_a_text_of_a_real_container_is_read_as_one() -> None:
    rid = from_text("kQEJAMcDZQk=")
    assert rid is not None
    assert _is_of_a_container(rid)


@given(databases, owned_numbers, child_numbers)
def test_each_kind_of_id_differs_from_the_others(database: bytes, owned: int, child: int) -> None:
    collection, user = collection_rid(database, owned), user_rid(database, owned)
    permission, document = permission_rid(user, child), child_rid(collection, child, kind=ChildKind.DOCUMENT)
    assert [len(rid) for rid in (collection, user, permission, document)] == [8, 8, 16, 16]
    assert [_is_of_a_container(rid) for rid in (collection, document, user, permission)] == [True, True, False, False]
    assert (child_kind(document), child_kind(permission)) == (ChildKind.DOCUMENT, None)


@given(st.sampled_from(list(ChildKind)), child_numbers)
def test_the_id_of_a_child_contains_its_kind_and_number(kind: ChildKind, number: int) -> None:
    rid = child_rid(COLLECTION, number, kind=kind)
    assert (len(rid), rid[:8]) == (16, COLLECTION)
    assert child_kind(rid) is kind
    assert child_number(rid) == number
    assert rid[-1] >> 4 == kind


def test_the_kinds_of_the_most_used_children() -> None:
    assert child_kind(child_rid(COLLECTION, 1, kind=ChildKind.DOCUMENT)) is ChildKind.DOCUMENT
    assert child_kind(pkrange_rid(COLLECTION, 1)) is ChildKind.PARTITION_KEY_RANGE
    assert child_kind(COLLECTION) is None


@given(owned_numbers, owned_numbers)
def test_different_numbers_give_different_ids(first: int, second: int) -> None:
    assert (collection_rid(DATABASE, first) == collection_rid(DATABASE, second)) == (first == second)


@pytest.mark.parametrize("number", [-1, CHILD_NUMBER_LIMIT])
def test_numbers_that_do_not_fit_are_a_mistake_of_the_caller(number: int) -> None:
    with pytest.raises(ValueError, match="31 bits"):
        collection_rid(DATABASE, number)
    with pytest.raises(ValueError, match="60 bits"):
        child_rid(COLLECTION, number, kind=ChildKind.DOCUMENT)
    with pytest.raises(ValueError, match="60 bits"):
        permission_rid(USER, number)


@given(child_numbers)
def test_the_fast_texts_equal_those_of_the_general_functions(number: int) -> None:
    links = DocumentLinks(COLLECTION)
    document = child_rid(COLLECTION, number, kind=ChildKind.DOCUMENT)
    assert links.rid_text(number) == to_text(document)
    assert links.self_link(links.rid_text(number)) == self_link_of_child(document, segment="docs")


@given(databases)
def test_the_text_of_a_database_has_the_eight_characters_that_clients_take_for_an_id(database: bytes) -> None:
    assert len(to_text(database)) == 8


def test_links_name_every_owner() -> None:
    database, collection, user = to_text(DATABASE), to_text(COLLECTION), to_text(USER)
    permission = permission_rid(USER, 5)
    sproc = child_rid(COLLECTION, 5, kind=ChildKind.STORED_PROCEDURE)
    assert self_link_of_database(DATABASE) == f"dbs/{database}/"
    assert self_link_of_collection(COLLECTION) == f"dbs/{database}/colls/{collection}/"
    assert self_link_of_child(sproc, segment="sprocs") == (
        f"dbs/{database}/colls/{collection}/sprocs/{to_text(sproc)}/"
    )
    assert self_link_of_user(USER) == f"dbs/{database}/users/{user}/"
    assert self_link_of_permission(permission) == f"dbs/{database}/users/{user}/permissions/{to_text(permission)}/"


def test_an_offer_s_text_has_four_characters() -> None:
    assert self_link_of_offer(bytes(3)) == "offers/AAAA/"
