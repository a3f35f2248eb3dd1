"""Captured digests, turned back into the values of the items at hand: the holder of the salt computes theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from asterism.advisor.captured_request import CapturedRequest, KeyComponent
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.time_stamps import TimeShape, iso_text
from asterism.advisor.value_digests import DIGEST_MARK, Scalar, digest

_DIGEST_CHARACTERS: Final = 17


class Undigester:
    """Values of requests by their digests. A digest of a value that no sampled item has stays as it is, and serves as a
    value; only for time stamps the time of the request stands in."""

    def __init__(self, profile: ItemProfile, salt: bytes) -> None:
        self._shapes: Mapping[str, TimeShape] = profile.time_shapes()
        values = {value for item in profile.sample.kept for value in item.values.values()}
        self._known: dict[str, Scalar] = {digest(value, salt=salt): value for value in values}

    def requests(self, requests: Sequence[CapturedRequest]) -> Iterator[CapturedRequest]:
        for request in requests:
            yield self._request(request)

    def _request(self, request: CapturedRequest) -> CapturedRequest:
        item_id = None if request.item_id is None else self._known.get(request.item_id, request.item_id)
        return replace(
            request,
            item_id=None if item_id is None else str(item_id),
            key=None if request.key is None else tuple(self._component(value) for value in request.key),
            values={path: self._value(path, value, request.at) for path, value in request.values.items()},
            equal={
                path: tuple(self._value(path, value, request.at) for value in values)
                for path, values in request.equal.items()
            },
            between={
                path: (self._bound(path, low, request.at), self._bound(path, high, request.at))
                for path, (low, high) in request.between.items()
            },
        )

    def _component(self, value: KeyComponent) -> KeyComponent:
        return self._known.get(value, value) if isinstance(value, str) else value

    def _value(self, path: str, value: Scalar, at: float) -> Scalar:
        if not _is_digest(value):
            return value
        known = self._known.get(str(value), value)
        shape = self._shapes.get(path)
        return known if shape is None or not _is_digest(known) else _time_of(shape, at)

    def _bound(self, path: str, value: Scalar, at: float) -> Scalar:
        """Return a bound of a query; None for one that cannot be known, since digests have no order."""
        found = self._value(path, value, at)
        return None if _is_digest(found) else found


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == _DIGEST_CHARACTERS and value.startswith(DIGEST_MARK)


def _time_of(shape: TimeShape, at: float) -> Scalar:
    if shape.is_text:
        return iso_text(at)
    return at * 1_000 if shape.unit == "ms" else at
