"""Ranges of pages as the protocol writes them: those with data, and those cleared since a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from asterism.apis.storage.xml_text import leaf, node
from asterism.models.blobs.page_maps import PageSpan


def page_list_xml(spans: Iterable[PageSpan], next_marker: str | None) -> str:
    return node("PageList", "".join(map(_span_xml, spans)) + leaf("NextMarker", next_marker or ""))


def _span_xml(span: PageSpan) -> str:
    name = "ClearRange" if span.is_clear else "PageRange"
    # The protocol's ends are inclusive.
    return f"<{name}><Start>{span.start}</Start><End>{span.end - 1}</End></{name}>"
