"""Options of `asterism serve`, for servers that no command line starts: from keywords to a list, from a list to values.

No typer: loading it takes a quarter of the time in which a server for tests is to be ready.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from asterism.apis.settings import Option


class UnknownOption(Exception):
    """An option that `asterism serve` does not have, or a value that it does not take; the text is one line."""


def options_of_keywords(keywords: Mapping[str, object]) -> list[str]:
    """Return `no_throttle=True, limit=["a=1", "b=2"]` as `--no-throttle --limit a=1 --limit b=2`."""
    options: list[str] = []
    for name, value in keywords.items():
        flag = f"--{name.replace('_', '-')}"
        values = value if isinstance(value, list | tuple) else [value]
        for each in values:
            if each is True:
                options.append(flag)
            elif each is not False and each is not None:
                # In one text: a value may begin with a hyphen.
                options.append(f"{flag}={each}")
    return options


def values_of(options: Sequence[str], declared: Sequence[Option]) -> dict[str, Any]:
    """Return the values of the options that are given, by name, as `asterism serve` would read them. Environment
    variables do not count: a test must not depend on the shell that it is started in."""
    parser = _Parser(prog="asterism serve", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for option in declared:
        if option.kind is bool:
            parser.add_argument(option.flag, dest=option.name, action="store_true")
        else:
            action = "append" if option.is_repeatable else "store"
            parser.add_argument(option.flag, dest=option.name, action=action, type=option.kind)
    values = vars(parser.parse_args(list(options)))
    for option in declared:
        if option.name in values and not option.is_repeatable:
            _check_range(option, values[option.name])
    return values


def _check_range(option: Option, value: Any) -> None:
    if option.minimum is not None and value < option.minimum:
        raise UnknownOption(f"{option.flag} must be at least {option.minimum:g}")
    if option.maximum is not None and value > option.maximum:
        raise UnknownOption(f"{option.flag} must be at most {option.maximum:g}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UnknownOption(f"{message}; `asterism serve --help` shows all options")
