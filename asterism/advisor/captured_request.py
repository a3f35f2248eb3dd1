"""Captured requests: one operation on a container each, as a line of JSON.

A capture of a running server has them, and people write them by hand: only `at` and `operation` are required, and
unknown members are ignored. Reading never fails as a whole: a line that is no request is counted and passed over, and
so is the last one of a file whose writer was stopped in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

from asterism.advisor.value_digests import Scalar
from asterism.errors import MalformedRequest
from asterism.values.json.text import dumps_parsed, loads
from asterism.values.undefined import UNDEFINED, Undefined

FORMAT: Final = 1
OPERATIONS: Final = ("read", "create", "upsert", "replace", "patch", "delete", "query", "feed", "batch", "script")
# A line with more is not written by the server, and is refused unread.
LINE_BYTES_MAX: Final = 1024 * 1024

Values: TypeAlias = Literal["plain", "digests"]
KeyComponent: TypeAlias = Scalar | Undefined
Bounds: TypeAlias = tuple[Scalar, Scalar]
Parsed = TypeVar("Parsed")


class NotARequest(ValueError):
    """A line that is neither a request nor a header; the text says why, for people."""


@dataclass(slots=True)
class CaptureHeader:
    """The first line of a capture, or of each part of one. Files written by hand need none."""

    database: str = ""
    container: str = ""
    # Seconds since the epoch.
    started: float = 0.0
    # The fraction of requests that was captured: totals are to be divided by it.
    sampling: float = 1.0
    values: Values = "plain"
    # Requests that the server could not keep since the header before.
    dropped: int = 0

    def to_json(self) -> bytes:
        members = {
            "capture": FORMAT,
            "database": self.database,
            "container": self.container,
            "started": self.started,
            "sampling": self.sampling,
            "values": self.values,
            **({"dropped": self.dropped} if self.dropped else {}),
        }
        return dumps_parsed(members) + b"\n"


# Not frozen: servers make one for every request that they sample.
@dataclass(slots=True)
class CapturedRequest:
    """An operation on a container: what the request named, and what it cost.

    None and empty mappings stand for members that are absent. In a capture with digests the values of `item_id`, `key`,
    `values`, `equal` and `between` are digests (`value_digests`).
    """

    # Seconds since the epoch.
    at: float
    operation: str
    item_id: str | None = None
    # UNDEFINED is the absent value. None: the request named no partition key.
    key: tuple[KeyComponent, ...] | None = None
    # Of an item that was written, or set by a patch: scalars by path.
    values: Mapping[str, Scalar] = field(default_factory=dict)
    # Of a query: the paths that its filter fixes by = or IN, with every value that each may have.
    equal: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    # Of a query: lower and upper bounds; None for an open end.
    between: Mapping[str, Bounds] = field(default_factory=dict)
    # The paths that a query sorts by.
    order: tuple[str, ...] = ()
    # The text of a query with its constants replaced.
    shape: str | None = None
    # Of the item, or of the page.
    size_bytes: int | None = None
    results: int | None = None
    loaded: int | None = None
    partitions: int | None = None
    # Request units.
    charge: float | None = None
    status: int | None = None
    # Equal for all operations of one transactional batch.
    batch: str | None = None
    # Of a query or feed: True if it asks for one physical partition, because its client asks them all one by one.
    of_range: bool = False
    # Of a query or feed: True for every page but the first.
    continued: bool = False

    def to_json(self, *, shown: Callable[[Scalar], Scalar] | None = None) -> bytes:
        """Return the request as a line, with its end. `shown` puts others in the place of the values that it named."""
        members: dict[str, object] = {"at": self.at, "operation": self.operation}
        members |= self._named_values(_as_it_is if shown is None else shown)
        facts = {
            "order": self.order or None,
            "shape": self.shape,
            "bytes": self.size_bytes,
            "results": self.results,
            "loaded": self.loaded,
            "partitions": self.partitions,
            "charge": self.charge,
            "status": self.status,
            "batch": self.batch,
            "ofRange": self.of_range or None,
            "continued": self.continued or None,
        }
        members |= {name: value for name, value in facts.items() if value is not None}
        return dumps_parsed(members) + b"\n"

    def _named_values(self, shown: Callable[[Scalar], Scalar]) -> dict[str, object]:
        """Return the members that have values of requests; an absent value and an open bound stay as they are."""
        named: dict[str, object] = {}
        if self.item_id is not None:
            named["id"] = shown(self.item_id)
        if self.key is not None:
            named["key"] = [{} if isinstance(value, Undefined) else shown(value) for value in self.key]
        if self.values:
            named["values"] = {path: shown(value) for path, value in self.values.items()}
        if self.equal:
            named["equal"] = {path: [shown(value) for value in values] for path, values in self.equal.items()}
        if self.between:
            named["between"] = {
                path: [None if bound is None else shown(bound) for bound in bounds]
                for path, bounds in self.between.items()
            }
        return named

    @classmethod
    def from_json(cls, line: bytes | str) -> CapturedRequest:
        """Read a line; NotARequest says what is wrong with it."""
        return _request_of(_members_of(line))


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that was passed over. `number` counts from 1."""

    number: int
    reason: str
    # The last line ends in the middle, as after a crash of its writer.
    is_torn: bool = False


def read_capture(lines: Iterable[bytes | str]) -> Iterator[CaptureHeader | CapturedRequest | BadLine]:
    """Yield what the lines of a capture hold, empty ones left out. A header may come again where parts were joined."""
    waiting: BadLine | None = None
    for number, line in enumerate(lines, start=1):
        if waiting is not None:
            yield waiting
            waiting = None
        if not line or line.isspace():
            continue
        try:
            members = _members_of(line)
        except NotARequest as problem:
            # The next line tells that this was not the last.
            waiting = BadLine(number, str(problem))
            continue
        try:
            yield _header_of(members) if "capture" in members else _request_of(members)
        except NotARequest as problem:
            yield BadLine(number, str(problem))
    if waiting is not None:
        yield BadLine(waiting.number, waiting.reason, is_torn=True)


def _as_it_is(value: Scalar) -> Scalar:
    return value


# --- the parts of a line ----------------------------------------------------------------------------------------------


def _members_of(line: bytes | str) -> dict[str, Any]:
    if len(line) > LINE_BYTES_MAX:
        raise NotARequest(f"The line is longer than {LINE_BYTES_MAX:,} bytes.")
    try:
        members = loads(line)
    except MalformedRequest as problem:
        raise NotARequest(str(problem)) from None
    if not isinstance(members, dict):
        raise NotARequest("The line must be a JSON object.")
    return members


def _header_of(members: Mapping[str, Any]) -> CaptureHeader:
    if members["capture"] != FORMAT:
        raise NotARequest(f"The capture has the format {members['capture']!r:.32}; this program reads format {FORMAT}.")
    values = members.get("values", "plain")
    if values not in ("plain", "digests"):
        raise NotARequest("'values' must be 'plain' or 'digests'.")
    sampling = _optional(members, "sampling", _amount)
    if sampling is not None and not 0 < sampling <= 1:
        raise NotARequest("'sampling' must be above 0 and at most 1.")
    return CaptureHeader(
        database=_optional(members, "database", _text) or "",
        container=_optional(members, "container", _text) or "",
        started=_optional(members, "started", _amount) or 0.0,
        sampling=1.0 if sampling is None else sampling,
        values=values,
        dropped=_optional(members, "dropped", _count) or 0,
    )


def _request_of(members: Mapping[str, Any]) -> CapturedRequest:
    operation = members.get("operation")
    if operation not in OPERATIONS:
        raise NotARequest(f"'operation' must be one of {', '.join(OPERATIONS)}.")
    at = _optional(members, "at", _amount)
    if at is None:
        raise NotARequest("'at' is missing: the seconds since the epoch.")
    return CapturedRequest(
        at=at,
        operation=operation,
        item_id=_optional(members, "id", _text),
        key=_optional(members, "key", _key),
        values=_optional(members, "values", _scalars_by_path) or {},
        equal=_optional(members, "equal", _lists_by_path) or {},
        between=_optional(members, "between", _bounds_by_path) or {},
        order=_optional(members, "order", _texts) or (),
        shape=_optional(members, "shape", _text),
        size_bytes=_optional(members, "bytes", _count),
        results=_optional(members, "results", _count),
        loaded=_optional(members, "loaded", _count),
        partitions=_optional(members, "partitions", _count),
        charge=_optional(members, "charge", _amount),
        status=_optional(members, "status", _count),
        batch=_optional(members, "batch", _text),
        of_range=members.get("ofRange") is True,
        continued=members.get("continued") is True,
    )


def _optional(members: Mapping[str, Any], name: str, parse: Callable[[object], Parsed | None]) -> Parsed | None:
    value = members.get(name)
    if value is None:
        return None
    parsed = parse(value)
    if parsed is None:
        raise NotARequest(f"'{name}' must be {_FORMS[parse]}.")
    return parsed


def _is_scalar(value: object) -> bool:
    return not isinstance(value, dict | list)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _amount(value: object) -> float | None:
    is_amount = type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]
    return float(value) if is_amount else None  # type: ignore[arg-type]


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        return None
    return tuple(value)


def _key(value: object) -> tuple[KeyComponent, ...] | None:
    if not isinstance(value, list) or not all(_is_scalar(component) or component == {} for component in value):
        return None
    return tuple(UNDEFINED if component == {} else component for component in value)


def _scalars_by_path(value: object) -> dict[str, Scalar] | None:
    return value if isinstance(value, dict) and all(map(_is_scalar, value.values())) else None


def _lists_by_path(value: object) -> dict[str, tuple[Scalar, ...]] | None:
    lists = value.values() if isinstance(value, dict) else ()
    if not isinstance(value, dict) or not all(isinstance(held, list) and all(map(_is_scalar, held)) for held in lists):
        return None
    return {path: tuple(held) for path, held in value.items()}


def _bounds_by_path(value: object) -> dict[str, Bounds] | None:
    lists = _lists_by_path(value)
    if lists is None or not all(len(held) == 2 for held in lists.values()):
        return None
    return {path: (held[0], held[1]) for path, held in lists.items()}


_FORMS: Final[Mapping[Callable[[Any], object], str]] = {
    _text: "a text",
    _amount: "a number that is not negative",
    _count: "a whole number that is not negative",
    _texts: "a list of texts",
    _key: "a list of values, with {} for an absent one",
    _scalars_by_path: "an object of values by path, none of them an object or array",
    _lists_by_path: 'an object of lists by path, as in {"/customer": ["ada"]}',
    _bounds_by_path: 'an object of two bounds by path, as in {"/at": ["2026-01-01", null]}',
}
