"""The rule of a synthetic partition key in words, as people read it on pages and in terminals."""

from __future__ import annotations

from asterism.partitioning.key_parts import KeyPart
from asterism.partitioning.synthetic_key import KeyRule, Suffix

# The separator of a suffix that names none, which needs no words.
_USUAL_SEPARATOR = Suffix(count=1).separator


def rule_in_words(rule: KeyRule) -> str:
    """Return what a key is made of: `deviceId + '-' + day of at, then one of 400 suffixes by a draw`."""
    joint = f" + '{rule.separator}' + " if rule.separator else " + "
    text = joint.join(map(_part_in_words, rule.parts))
    if rule.suffix is not None:
        text += f", then {_suffix_in_words(rule.suffix)}"
    return text if rule.missing == "refuse" else f"{text}; no value for an item that lacks one of these properties"


def _part_in_words(part: KeyPart) -> str:
    text = _name_of(part)
    if part.is_time:
        text = f"{part.bucket} of {text}" if part.bucket else f"time of {text}"
        if part.format is not None:
            text += f" as '{part.format}'"
        return text if part.unit == "s" else f"{text} (numbers are milliseconds)"
    if part.digits is not None:
        return f"{text} with {_counted(part.digits, 'digit')}"
    return text if part.decimals is None else f"{text} with {_counted(part.decimals, 'decimal')}"


def _suffix_in_words(suffix: Suffix) -> str:
    mark = "" if suffix.separator == _USUAL_SEPARATOR else f"'{suffix.separator}' and "
    text = f"{mark}one of {_counted(suffix.count, 'suffix', 'suffixes')} by "
    text += "a draw" if suffix.of is None else f"the hash of {_name_of(suffix.of)}"
    if not suffix.earlier_counts:
        return text
    return f"{text} (earlier items: of {', '.join(str(count) for count in reversed(suffix.earlier_counts))})"


def _name_of(part: KeyPart) -> str:
    return part.path.removeprefix("/")


def _counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
