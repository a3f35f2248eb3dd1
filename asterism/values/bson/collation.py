"""Collations: the order and equality of text in a language, as a client specifies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.values.bson.collation_keys import key_maker
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
# Other orders of a language: de@collation=phonebook.
_VARIANTS: Final = (
    "big5han compat dictionary eor gb2312han phonebook phonetic pinyin reformed search searchjl standard stroke "
    "traditional unihan zhuyin"
)
VARIANTS: Final = frozenset(_VARIANTS.split())
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
    language, at, variant = locale.partition("@collation=")
    if language not in LOCALES or (at and variant not in VARIANTS):
        raise CollationProblem(2, f"Field 'locale' is invalid in: {dict(specification)}")
    strength = _strength(specification.get("strength"))
    complete: Document = {
        "locale": locale,
        "caseLevel": specification.get("caseLevel", False),
        "caseFirst": specification.get("caseFirst", "off"),
        "strength": strength,
        "numericOrdering": specification.get("numericOrdering", False),
        "alternate": specification.get("alternate", "shifted" if locale == "th" else "non-ignorable"),
        "maxVariable": specification.get("maxVariable", "punct"),
        "normalization": specification.get("normalization", False),
        "backwards": specification.get("backwards", locale == "fr_CA"),
        "version": VERSION,
    }
    complete |= {name: _DEFAULTS[name] for name, value in complete.items() if value is None}
    if complete["caseFirst"] != "off" and strength < _CASE_STRENGTH and not complete["caseLevel"]:
        raise CollationProblem(2, "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2")
    return Collation(complete, key_maker(complete))


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
