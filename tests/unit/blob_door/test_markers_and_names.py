"""Texts of listings: etags, markers and names survive their way to a client and back."""

from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.blob.containers.listing import read_marker, write_marker
from asterism.apis.blob.etags import etag_in_list, etag_text, read_etags
from asterism.apis.blob.listing_xml import name_xml
from asterism.apis.storage.refusals import Refusal
from asterism.models.blobs.calls import Marker

TICKS = st.integers(0, 1 << 60)
NAMES = st.text(min_size=1, max_size=200)


@given(TICKS)
def test_an_etag_is_read_as_it_was_written(ticks: int) -> None:
    assert read_etags(etag_text(ticks)) == (ticks,)
    assert read_etags(etag_in_list(ticks)) == (ticks,)


def test_an_etag_of_another_form_is_that_of_no_blob() -> None:
    assert read_etags('"abc", *') == (-1, "*")
    assert read_etags(" ") is None


@given(NAMES, st.none() | TICKS)
def test_a_marker_is_read_as_it_was_written(name: str, moment: int | None) -> None:
    marker = Marker(name, moment)
    assert read_marker(write_marker(marker)) == marker


@given(st.text(min_size=1).filter(lambda text: not text.startswith("2!")))
def test_another_text_than_a_marker_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        read_marker(text)


@given(NAMES)
def test_a_parser_reads_every_name_as_it_is(name: str) -> None:
    element = ElementTree.fromstring(name_xml(name))
    text = element.text or ""
    assert (unquote(text, errors="surrogatepass") if element.get("Encoded") else text) == name


@pytest.mark.parametrize("name", ["a\x01b", "\ufffe"])
def test_a_name_that_xml_cannot_hold_is_encoded(name: str) -> None:
    assert name_xml(name).startswith('<Name Encoded="true">')
