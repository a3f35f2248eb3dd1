"""Settings of the server and of its doors: frozen dataclasses whose fields say how an operator gives them.

A field declared with `option` has an option of `asterism serve` and an environment variable; one declared with
`asterism.limits.limit` is changed by `--limit`. The command, its help and docs/reference.md are made from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")

# The panels of `asterism serve --help`.
WHERE = "Where it listens and keeps its data"
WHO = "Who may connect"
HOW = "How it behaves"


class StartRefused(Exception):
    """The server cannot start as asked; the text is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of `asterism serve`, as the command line and the reference show it."""

    flag: str
    # Of each value on the command line. A bool is a flag, and False without it.
    kind: type[Any]
    # Without the option; None where there is no value then.
    default: Any
    help: str
    panel: str
    metavar: str | None = None
    is_repeatable: bool = False
    # Stands in the help in place of the default.
    default_help: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    # Makes the setting of the value (of the tuple of values, if it may be repeated); raises StartRefused.
    parse: Callable[[Any], Any] | None = None

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def environment_variable(self) -> str:
        return f"ASTERISM_{self.name.upper()}"

    def setting_of(self, given: Any) -> Any:
        value = tuple(given or ()) if self.is_repeatable else given
        return value if self.parse is None else self.parse(value)


def option(
    default: T,
    flag: str,
    help: str,
    *,
    panel: str,
    kind: type[Any] | None = None,
    metavar: str | None = None,
    is_repeatable: bool = False,
    is_secret: bool = False,
    default_help: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    parse: Callable[[Any], T] | None = None,
) -> T:
    """Declare a field of a settings dataclass as an option.

    `kind` is needed where the default does not tell it, `parse` where the setting differs from the value on the
    command line. A secret does not show in the text of the settings.
    """
    declared = Option(
        flag,
        kind=kind or (str if is_repeatable else type(default)),
        default=None if is_repeatable else False if isinstance(default, bool) else default,
        help=help,
        panel=panel,
        metavar=metavar,
        is_repeatable=is_repeatable,
        default_help=default_help,
        minimum=minimum,
        maximum=maximum,
        parse=parse,
    )
    return field(default=default, repr=not is_secret, metadata={"option": declared})


def options_of(settings: type[Any]) -> dict[str, Option]:
    """Return the options of a settings dataclass, by field."""
    return {
        declared.name: cast(Option, declared.metadata["option"])
        for declared in fields(settings)
        if "option" in declared.metadata
    }


def given_settings(settings: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a settings dataclass whose options are among the values, by the name of the option."""
    return {
        field_name: declared.setting_of(values[declared.name])
        for field_name, declared in options_of(settings).items()
        if declared.name in values
    }


__all__ = ["HOW", "WHERE", "WHO", "Option", "StartRefused", "given_settings", "option", "options_of"]
