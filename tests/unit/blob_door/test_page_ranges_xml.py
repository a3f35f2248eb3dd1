"""Ranges of pages in answers."""

from __future__ import annotations

from asterism.apis.blob.page_ranges_xml import page_list_xml
from asterism.models.blobs.page_maps import PageSpan


def test_ranges_end_with_their_last_byte() -> None:
    spans = [PageSpan(0, 512), PageSpan(512, 1024, is_clear=True)]
    assert page_list_xml(spans, "1024") == (
        "<PageList><PageRange><Start>0</Start><End>511</End></PageRange>"
        "<ClearRange><Start>512</Start><End>1023</End></ClearRange><NextMarker>1024</NextMarker></PageList>"
    )


def test_the_last_page_of_ranges_has_an_empty_marker() -> None:
    assert page_list_xml([], None) == "<PageList><NextMarker /></PageList>"
