"""Options that are declared as data, as typer reads them: from the signature of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer

from asterism.apis.settings import Option

Command = TypeVar("Command", bound=Callable[..., None])


def with_options(options: Sequence[Option]) -> Callable[[Command], Command]:
    """Give a command, which takes the values as keywords, the signature with these options."""
    parameters = [_parameter(option) for option in options]

    def sign(command: Command) -> Command:
        signed: Any = command
        signed.__signature__ = inspect.Signature(parameters)
        signed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return sign


def _parameter(option: Option) -> inspect.Parameter:
    may_lack = option.is_repeatable or option.default is None
    kind = list[option.kind] if option.is_repeatable else option.kind  # type: ignore[name-defined]  # known at run time
    declared = typer.Option(
        option.flag,
        envvar=option.environment_variable,
        metavar=option.metavar,
        min=option.minimum,
        max=option.maximum,
        show_default=option.default_help or True,
        rich_help_panel=option.panel,
        help=option.help,
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind | None if may_lack else kind, declared],
    )
