"""Collations: the order and equality of text in a language, as keys of bytes.

Keys are made of three levels, each of them only as far as the strength asks for it: base letters, accents, case. They
follow the root order of the Unicode collation for what most texts consist of; tailorings of single languages beyond it
are not applied.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import is_nan
from asterism.values.bson.types import Decimal128, Document

_LANGUAGES: Final = (
    "af am ar as az be bg bn bo bs ca ceb chr cs cy da de de_AT dsb dz ee el en en_US en_US_POSIX eo es et fa fa_AF fi "
    "fil fo fr fr_CA ga gl gu ha haw he hi hr hsb hu hy id ig is it ja ka kk kl km kn ko kok ky lb lkt ln lo lt lv mk "
    "ml mn mr ms mt my nb ne nl nn om or pa pl ps pt ro ru se si sk sl smn sq sr sr_Latn sv sw ta te th tk to tr ug uk "
    "ur vi wae xh yi yo zh zh_Hant zu und root pt_BR pt_PT en_GB es_ES de_DE fr_FR"
)
LOCALES: Final = frozenset(_LANGUAGES.split())
SIMPLE: Final = "simple"

_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "locale": ("string",),
    "caseLevel": ("bool",),
    "caseFirst": ("string",),
    "strength": ("int", "long", "double", "decimal"),
    "numericOrdering": ("bool",),
    "alternate": ("string",),
    "maxVariable": ("string",),
    "normalization": ("bool",),
    "backwards": ("bool",),
    "version": ("string",),
}
_CHOICES: Final = {
    "caseFirst": ("upper", "lower", "off"),
    "alternate": ("non-ignorable", "shifted"),
    "maxVariable": ("punct", "space"),
}
_STRENGTH_MAX = 5
# The least strength that tells upper case from lower.
_CASE_STRENGTH = 3
# Of the collation tables that the protocol reports.
VERSION: Final = "57.1"
_DEFAULTS: Final[Document] = {
    "caseLevel": False, "caseFirst": "off", "numericOrdering": False, "alternate": "non-ignorable",
    "maxVariable": "punct", "normalization": False,
}  # fmt: skip


class CollationProblem(Exception):
    """A specification that cannot be right, with the code that clients expect."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Collation:
    """`key` gives the bytes by which text is compared; None for the order of its own bytes."""

    specification: Document
    key: Callable[[str], bytes] | None

    def as_document(self) -> Document:
        return self.specification


def make_collation(specification: Mapping[str, Any]) -> Collation:
    """Return the collation of a specification, completed with its defaults; CollationProblem."""
    _check(specification)
    locale = specification["locale"]
    if locale == SIMPLE:
        return Collation({"locale": SIMPLE}, None)
    if locale not in LOCALES:
        raise CollationProblem(2, f"Field 'locale' is invalid in: {dict(specification)}")
    strength = _strength(specification.get("strength"))
    complete: Document = {
        "locale": locale,
        "caseLevel": specification.get("caseLevel", False),
        "caseFirst": specification.get("caseFirst", "off"),
        "strength": strength,
        "numericOrdering": specification.get("numericOrdering", False),
        "alternate": specification.get("alternate", "non-ignorable"),
        "maxVariable": specification.get("maxVariable", "punct"),
        "normalization": specification.get("normalization", False),
        "backwards": specification.get("backwards", locale == "fr_CA"),
        "version": VERSION,
    }
    complete |= {name: _DEFAULTS[name] for name, value in complete.items() if value is None}
    if complete["caseFirst"] != "off" and strength < _CASE_STRENGTH and not complete["caseLevel"]:
        raise CollationProblem(2, "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2")
    return Collation(complete, _key_maker(complete))


def _check(specification: Mapping[str, Any]) -> None:
    for name, value in specification.items():
        types = _TYPES.get(name)
        if types is None:
            raise CollationProblem(40415, f"BSON field 'collation.{name}' is an unknown field.")
        # Null stands for a field that is not given, but for this one.
        if (value is not None or name == "backwards") and type_name(value) not in types:
            raise CollationProblem(14, f"BSON field 'collation.{name}' is the wrong type '{type_name(value)}'")
        if name == "version" and value not in (None, VERSION):
            raise CollationProblem(161, f"The collation version '{value}' is not that of the server, {VERSION}")
        if value is not None and name in _CHOICES and value not in _CHOICES[name]:
            raise CollationProblem(2, f"Enumeration value '{value}' for field 'collation.{name}' is not a valid value.")
    if not specification.get("locale"):
        code = 40414 if specification.get("locale") is None else 2
        raise CollationProblem(code, "BSON field 'collation.locale' is missing but a required field")


def _strength(value: Any) -> int:
    if value is None:
        return 3
    number = value.to_decimal() if isinstance(value, Decimal128) else value
    if not is_number(value) or is_nan(value) or not 0 <= number <= _STRENGTH_MAX + 1:
        raise CollationProblem(2, f"Enumeration value '{number}' for field 'collation.strength' is not a valid value.")
    # A double is cut, a decimal goes to the nearest integer.
    strength = round(number) if isinstance(value, Decimal128) else int(number)
    if not 1 <= strength <= _STRENGTH_MAX:
        raise CollationProblem(2, f"Enumeration value '{number}' for field 'collation.strength' is not a valid value.")
    return strength


def _key_maker(specification: Document) -> Callable[[str], bytes]:
    strength = specification["strength"]
    with_case = strength >= 3 or specification["caseLevel"]
    with_accents = strength >= 2
    shifted = specification["alternate"] == "shifted"
    numeric = specification["numericOrdering"]
    upper_first = specification["caseFirst"] == "upper"
    backwards = specification["backwards"]
    spaces_only = specification["maxVariable"] == "space"

    @lru_cache(maxsize=4096)
    def key(text: str) -> bytes:
        letters: list[bytes] = []
        accents: list[bytes] = []
        cases = bytearray()
        digits = ""
        for character in unicodedata.normalize("NFD", text):
            if numeric and character.isdecimal():
                digits += str(unicodedata.decimal(character))
                continue
            if digits:
                letters.append(_number_weight(digits))
                digits = ""
            category = unicodedata.category(character)
            if category == "Mn":
                accents.append(len(letters).to_bytes(2, "big", signed=False) + character.encode())
                continue
            if category == "Cc" and character not in "\t\n\v\f\r":
                continue
            if shifted and (category[0] == "Z" or (not spaces_only and category[0] == "P")):
                continue
            letters.append(_weight(character, category))
            cases.append(_case(character, upper_first))
        if digits:
            letters.append(_number_weight(digits))
        parts = [b"".join(letters)]
        if with_accents:
            parts.append(b"".join(accents[::-1] if backwards else accents))
        if with_case:
            parts.append(bytes(cases))
        if shifted and strength >= 4:
            parts.append(text.encode("utf-8", "surrogatepass"))
        return b"\x00\x00".join(parts)

    return key


def _number_weight(digits: str) -> bytes:
    stripped = digits.lstrip("0") or "0"
    return b"\x40" + len(stripped).to_bytes(2, "big") + stripped.encode() + b"\x01"


# Groups of the root order: spaces, punctuation, symbols, digits, letters.
_GROUPS: Final = {"Z": b"\x10", "C": b"\x10", "P": b"\x20", "S": b"\x30", "N": b"\x40", "L": b"\x50"}
_PUNCTUATION: Final = "_-,;:!?.'\"()[]{}@*/\\&#%"
_SYMBOLS: Final = "`^+<=>|~$"


def _weight(character: str, category: str) -> bytes:
    group = _GROUPS.get(category[0], b"\x60")
    for order in (_PUNCTUATION, _SYMBOLS):
        place = order.find(character)
        if place >= 0:
            return group + bytes((1, place + 1)) + b"\x01"
    folded = character.casefold()
    return group + b"\x02" + folded.encode("utf-8", "surrogatepass") + b"\x01"


def _case(character: str, upper_first: bool) -> int:
    is_upper = character != character.lower()
    return 2 if is_upper != upper_first else 1
