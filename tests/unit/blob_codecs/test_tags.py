"""Tags of blobs: their rules, header and document, and the expressions over them."""

from __future__ import annotations

import pytest
from azure.storage.blob._serialize import serialize_blob_tags_header
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.blob.refused_input import RefusedInput
from asterism.apis.blob.tag_filter import (
    Comparison,
    MalformedTagFilter,
    TagTest,
    matches,
    parse_condition,
    parse_search,
)
from asterism.apis.blob.tags import checked_tags, tags_from_header, tags_from_xml, tags_to_header, tags_to_xml

CHARACTERS = "abcxyzABCXYZ0189 +-./:=_"
TAGS = st.dictionaries(st.text(CHARACTERS, min_size=1, max_size=128), st.text(CHARACTERS, max_size=256), max_size=10)


@given(TAGS)
def test_tags_come_back_from_header_and_document(tags: dict[str, str]) -> None:
    assert tags_from_header(tags_to_header(tags)) == tags
    assert tags_from_xml(tags_to_xml(tags).encode()) == tags


@given(TAGS)
def test_the_clients_header_is_read(tags: dict[str, str]) -> None:
    assert tags_from_header(serialize_blob_tags_header(tags) or "") == tags


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([("", "v")], "EmptyTagName"),
        ([("a", "1"), ("a", "2")], "DuplicateTagNames"),
        ([("a" * 129, "")], "TagsTooLarge"),
        ([("a", "v" * 257)], "TagsTooLarge"),
        ([(f"tag{number}", "") for number in range(11)], "TagsTooLarge"),
        ([("a#", "")], "InvalidTag"),
        ([("a", "ü")], "InvalidTag"),
    ],
)
def test_tags_that_break_a_rule_are_refused(pairs: list[tuple[str, str]], code: str) -> None:
    with pytest.raises(RefusedInput) as caught:
        checked_tags(pairs)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<Tags>",
        b"<Other/>",
        b"<Tags/>",
        b"<Tags><TagSet><Tag><Key>a</Key></Tag></TagSet></Tags>",
        b"<Tags><TagSet><Tag><Key>a<b/>c</Key><Value/></Tag></TagSet></Tags>",
        b"<Tags><TagSet><Tag><Key>a</Key><Value><b>c</b></Value></Tag></TagSet></Tags>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><Tags><TagSet/></Tags>',
        '<!DOCTYPE a [<!ENTITY b "c">]><Tags><TagSet/></Tags>'.encode("utf-16"),
    ],
)
def test_other_documents_are_refused(body: bytes) -> None:
    with pytest.raises(RefusedInput) as caught:
        tags_from_xml(body)
    assert caught.value.code == "InvalidXmlDocument"


def test_a_search_is_a_list_of_tests() -> None:
    search = parse_search("@container='logs' and \"tag 1\" >= 'it''s' AND tag2<'x'")
    assert search.tests == (
        TagTest("@container", Comparison.EQ, "logs"),
        TagTest("tag 1", Comparison.GE, "it's"),
        TagTest("tag2", Comparison.LT, "x"),
    )
    assert search.container == "logs"
    assert search.tag_names == ("tag 1", "tag2")


def test_a_search_matches_where_every_test_holds() -> None:
    search = parse_search("@container = 'logs' AND \"year\" > '2020' AND \"year\" <= '2024'")
    assert search.matches({"year": "2024"}, container="logs")
    assert not search.matches({"year": "2025"}, container="logs")
    assert not search.matches({"year": "2024"}, container="other")
    assert not search.matches({}, container="logs")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("\"tag1\"='first tag'", False),
        ("\"tag1 name\"='my tag' AND \"tag2\"='secondtag'", True),
        ("\"tag2\"='x' OR \"tag1 name\" > 'm'", True),
        ("\"tag2\"<>'x'", True),
        ("\"absent\"<>'x'", True),
        ("\"absent\">=''", False),
        ("\"tag2\"='x' AND \"tag2\"='y' OR tag2='secondtag'", True),
        ("tag2='x' AND (tag2='y' OR tag2='secondtag')", False),
    ],
)
def test_conditions_hold_as_they_say(text: str, holds: bool) -> None:
    tags = {"tag1 name": "my tag", "tag2": "secondtag"}
    assert matches(parse_condition(text), tags) is holds


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("tag", 3),
        ("tag = value", 6),
        ("tag = 'value", 6),
        ("a='1' b='2'", 6),
        ("a='1' OR b='2'", 6),
        ("a<>'1'", 1),
        ("(a='1')", 0),
        ("@other='1'", 0),
        ("a='1' AND", 9),
    ],
)
def test_a_search_that_cannot_be_read_names_the_place(text: str, position: int) -> None:
    with pytest.raises(MalformedTagFilter) as caught:
        parse_search(text)
    assert caught.value.position == position


@pytest.mark.parametrize("text", ["@container='a'", "(" * 30 + "a='1'" + ")" * 30, "(a='1'", "a='1' AND " * 101])
def test_conditions_have_limits(text: str) -> None:
    with pytest.raises(MalformedTagFilter):
        parse_condition(text)


def holds_or_position(text: str) -> int:
    try:
        return matches(parse_condition(text), {})
    except MalformedTagFilter as error:
        return error.position


@given(st.text("ab@\"'<>=() ANDOR", max_size=40))
def test_any_text_is_a_condition_or_an_error_within_it(text: str) -> None:
    assert 0 <= holds_or_position(text) <= len(text)
