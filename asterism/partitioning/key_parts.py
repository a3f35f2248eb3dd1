"""A part of a synthetic partition key: the text of one property of an item, formatted as the rule declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from asterism.errors import MalformedRequest
from asterism.partitioning.key_path import parse_key_path
from asterism.partitioning.partition_key import as_double, value_at
from asterism.values.number_text import number_text
from asterism.values.undefined import UNDEFINED

Bucket = Literal["hour", "day", "month"]
Unit = Literal["s", "ms"]

# Zeros beyond these would only lengthen keys; a whole number has at most 16 digits that a double holds exactly.
DIGITS_MAX = 20
DECIMALS_MAX = 15

_FORMATS: Final[Mapping[str, str]] = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m"}
_UNIT_SECONDS: Final[Mapping[str, float]] = {"s": 1.0, "ms": 0.001}
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
# Of ISO 8601 only texts that begin with a whole date, or are a month: they sort by their dates, however they go on.
_TIME_STAMP = re.compile(r"\d{4}-\d\d(-\d\d([T ].*)?)?", re.ASCII)
_DIGITS_WRITTEN: Final[Mapping[str, str]] = {"Y": r"\d{4}", "%": "%"}
_DIRECTIVES: Final[Mapping[str, Callable[[datetime], str]]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "m": lambda moment: f"{moment.month:02}",
    "d": lambda moment: f"{moment.day:02}",
    "H": lambda moment: f"{moment.hour:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "%": lambda _moment: "%",
}
_FORMAT_CHARACTERS_MAX = 64
_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_DATE_CHARACTERS = len("2026-01-31")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPTIONS = ("path", "bucket", "format", "unit", "digits", "decimals")


class KeyRuleError(ValueError):
    """A rule that cannot be, or an item that a rule cannot be applied to. The text says what to change."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """The property at `path`, and how its value is written. At most one of time, `digits` and `decimals` is declared:
    `bucket` and `format` read the value as a time stamp."""

    path: str
    bucket: Bucket | None = None
    format: str | None = None
    unit: Unit = "s"
    digits: int | None = None
    decimals: int | None = None
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    # The name of a property at the top of an item, and whether texts are taken as they are: of nearly every part.
    _only_name: str | None = field(init=False, repr=False, compare=False)
    _takes_texts: bool = field(init=False, repr=False, compare=False)
    _pieces: tuple[Callable[[datetime], str] | str, ...] = field(init=False, repr=False, compare=False)
    # The form of the texts that `text_at` gives.
    _written: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = parse_key_path(self.path)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_only_name", names[0] if len(names) == 1 else None)
        takes_texts = not self.is_time and self.digits is None and self.decimals is None
        object.__setattr__(self, "_takes_texts", takes_texts)
        text = self.format if self.format is not None else _FORMATS.get(self.bucket or "", "")
        object.__setattr__(self, "_pieces", _pieces_of(text))
        object.__setattr__(self, "_written", _form_of(text))

    @property
    def is_time(self) -> bool:
        return self.bucket is not None or self.format is not None

    @classmethod
    def parse(cls, given: object) -> KeyPart:
        """Read a part of a rule: a path, or an object with one."""
        if isinstance(given, str):
            given = {"path": given}
        if not isinstance(given, Mapping):
            raise KeyRuleError("Each part of a synthetic key must be a path, or an object with a 'path'.")
        refuse_unknown(given, _OPTIONS, what="A part of a synthetic key")
        _check_options(given)
        return cls(**{name: given[name] for name in _OPTIONS if given.get(name) is not None})

    def to_json(self) -> str | dict[str, Any]:
        shown: dict[str, Any] = {"path": self.path}
        for name in ("bucket", "format", "digits", "decimals"):
            if getattr(self, name) is not None:
                shown[name] = getattr(self, name)
        if self.is_time and self.unit != "s":
            shown["unit"] = self.unit
        return self.path if len(shown) == 1 else shown

    def value_in(self, item: Mapping[str, Any]) -> object:
        name = self._only_name
        return value_at(item, self.names) if name is None else item.get(name, UNDEFINED)

    def is_written(self, value: object) -> bool:
        """Return whether a value has the form that values are written in, and so need not be the source itself."""
        return type(value) is str and (not self.is_time or self._written.fullmatch(value) is not None)

    def text(self, value: object) -> str:
        """Return how a value is written in a key. The caller has seen that the item has one."""
        if type(value) is str and self._takes_texts:
            return value
        if self.is_time:
            return self.text_at(self.moment_of(value))
        if isinstance(value, dict | list):
            raise KeyRuleError(
                f"The value at {self.path} is an {'object' if isinstance(value, dict) else 'array'}, which a synthetic "
                "key cannot be made of. Use a path to a string, number, boolean or time stamp."
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._text_of_other(value)
        return self._text_of_number(value)

    def _text_of_other(self, value: object) -> str:
        if self.digits is None and self.decimals is None and isinstance(value, bool):
            return "true" if value else "false"
        raise KeyRuleError(f"The value at {self.path} is not a number, which the synthetic key is declared for.")

    def _text_of_number(self, value: int | float) -> str:
        number = as_double(value)
        if number is None:
            raise KeyRuleError(f"The value at {self.path} is not a number that fits a double.")
        if self.decimals is not None:
            return f"{number:.{self.decimals}f}"
        if self.digits is None:
            return number_text(number)
        if number < 0 or not float(number).is_integer():
            raise KeyRuleError(f"The value at {self.path} is not a whole number from 0, which 'digits' needs.")
        return f"{int(number):0{self.digits}}"

    # --- time stamps ------------------------------------------------------------------------------------------------

    def moment_of(self, value: object) -> datetime:
        """Return the moment of a time stamp, in UTC and rolled up to the bucket's start."""
        return self._bucket_of(self._read_moment(value))

    def _bucket_of(self, moment: datetime) -> datetime:
        match self.bucket:
            case "hour":
                return moment.replace(minute=0, second=0, microsecond=0)
            case "day":
                return moment.replace(hour=0, minute=0, second=0, microsecond=0)
            case "month":
                return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            case _:
                return moment

    def text_at(self, moment: datetime) -> str:
        return "".join([piece if isinstance(piece, str) else piece(moment) for piece in self._pieces])

    def texts_between(self, low: object, high: object, *, count_max: int) -> list[str] | None:
        """Return what values between two bounds can be written as; None if these are too many, or cannot be told."""
        span = self._moments_between(low, high) if self.bucket is not None else None
        if span is None:
            return None
        texts: list[str] = []
        moment, end = span
        while moment <= end:
            if len(texts) == count_max:
                return None
            texts.append(self.text_at(moment))
            moment = self._next_bucket(moment)
        return texts

    def _moments_between(self, low: object, high: object) -> tuple[datetime, datetime] | None:
        """Return the first and the last moment that values between two bounds can have."""
        try:
            first, last = self._read_moment(low), self._read_moment(high)
            if type(low) is str and type(high) is str:
                # Texts compare by their own dates, whatever their distance from UTC, which is less than a day.
                first = _moment_of_text(low[:_DATE_CHARACTERS]) - _DAY
                last = _moment_of_text(high[:_DATE_CHARACTERS]) + 2 * _DAY - _MICROSECOND
            elif type(low) is str or type(high) is str:
                return None
            return self._bucket_of(first), last
        except (KeyRuleError, OverflowError):
            return None

    def _next_bucket(self, moment: datetime) -> datetime:
        """Return the start of the bucket after the one that begins at `moment`."""
        match self.bucket:
            case "hour":
                return moment + timedelta(hours=1)
            case "day":
                return moment + timedelta(days=1)
            case _:
                return moment.replace(year=moment.year + moment.month // 12, month=moment.month % 12 + 1)

    def _read_moment(self, value: object) -> datetime:
        try:
            if type(value) is str:
                return _moment_of_text(value)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return _EPOCH + timedelta(seconds=value * _UNIT_SECONDS[self.unit])
        except (ValueError, OverflowError):
            pass
        raise KeyRuleError(
            f"The value at {self.path} is not a time stamp. Write ISO 8601 such as 2026-01-31T09:30:00Z, or "
            f"{'milliseconds' if self.unit == 'ms' else 'seconds'} since 1970 as a number."
        )


def refuse_unknown(given: Mapping[str, Any], known: tuple[str, ...], *, what: str) -> None:
    for name in given:
        if name not in known:
            raise KeyRuleError(f"{what} has no option {name!r}; known are {', '.join(known)}.")


def whole_number_between(given: object, minimum: int, maximum: int, *, what: str) -> int:
    if type(given) is not int or not minimum <= given <= maximum:
        raise KeyRuleError(f"{what} must be a whole number from {minimum} to {maximum:,}.")
    return given


def checked_path(given: object, *, what: str) -> str:
    """Return a path to a property, refused if it is not one that an application sets."""
    if not isinstance(given, str):
        raise KeyRuleError(f"{what} needs a 'path', such as /customer.")
    try:
        names = parse_key_path(given)
    except MalformedRequest as refusal:
        raise KeyRuleError(refusal.reason) from None
    if not names or names[0] in ("_ts", "_etag", "_rid", "_self", "_attachments"):
        raise KeyRuleError(f"{what} cannot be made of {given!r}: the server sets it after the key is known.")
    return given


def _check_options(given: Mapping[str, Any]) -> None:
    checked_path(given.get("path"), what="A part of a synthetic key")
    bucket, unit = given.get("bucket"), given.get("unit")
    if bucket is not None and bucket not in _FORMATS:
        raise KeyRuleError(f"The bucket {bucket!r} must be one of {', '.join(_FORMATS)}.")
    if unit is not None and unit not in _UNIT_SECONDS:
        raise KeyRuleError(f"The unit {unit!r} of a time stamp must be s or ms.")
    if given.get("digits") is not None:
        whole_number_between(given["digits"], 1, DIGITS_MAX, what="'digits'")
    if given.get("decimals") is not None:
        whole_number_between(given["decimals"], 0, DECIMALS_MAX, what="'decimals'")
    is_time = bucket is not None or given.get("format") is not None
    if is_time + (given.get("digits") is not None) + (given.get("decimals") is not None) > 1:
        raise KeyRuleError("A part of a synthetic key is a time stamp, or has 'digits', or has 'decimals'.")
    if unit is not None and not is_time:
        raise KeyRuleError("The 'unit' of a part needs a 'bucket' or a 'format'.")
    form = given.get("format")
    if form is not None:
        if not isinstance(form, str) or not form or len(form) > _FORMAT_CHARACTERS_MAX:
            raise KeyRuleError(f"The 'format' of a part must be a text of 1 to {_FORMAT_CHARACTERS_MAX} characters.")
        _pieces_of(form)


def _pieces_of(text: str) -> tuple[Callable[[datetime], str] | str, ...]:
    """Compile a format: texts, and functions of the moment in the places of its directives."""
    pieces: list[Callable[[datetime], str] | str] = []
    end = 0
    for found in _DIRECTIVE.finditer(text):
        if found[1] not in _DIRECTIVES:
            raise KeyRuleError(f"The format {text!r} has %{found[1]}; known are %Y %m %d %H %M %S and %%.")
        pieces += [text[end : found.start()], _DIRECTIVES[found[1]]]
        end = found.end()
    return tuple(piece for piece in (*pieces, text[end:]) if piece != "")


def _form_of(text: str) -> re.Pattern[str]:
    """Compile the form of the texts that a format gives."""
    form, end = "", 0
    for found in _DIRECTIVE.finditer(text):
        form += re.escape(text[end : found.start()]) + _DIGITS_WRITTEN.get(found[1], r"\d\d")
        end = found.end()
    return re.compile(form + re.escape(text[end:]), re.ASCII)


def _moment_of_text(text: str) -> datetime:
    if _TIME_STAMP.fullmatch(text) is None:
        raise ValueError
    moment = datetime.fromisoformat(f"{text}-01" if len(text) == len("2026-01") else text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
