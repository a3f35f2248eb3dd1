"""Options and arguments of `asterism bus`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

_MESSAGES: Final = "The messages"

Path = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY", help="A queue, a topic, or a subscription as TOPIC/subscriptions/NAME.", show_default=False
    ),
]
Subscription = Annotated[
    str | None, typer.Option("--subscription", metavar="NAME", help="A subscription of the topic.", show_default=False)
]
DeadLetter = Annotated[
    bool, typer.Option("--dead-letter", rich_help_panel=_MESSAGES, help="Those in the dead letter queue.")
]
TransferDeadLetter = Annotated[
    bool,
    typer.Option("--transfer-dead-letter", rich_help_panel=_MESSAGES, help="Those that could not be forwarded."),
]
Count = Annotated[
    int, typer.Option("--count", min=1, metavar="N", rich_help_panel=_MESSAGES, help="How many, if there are as many.")
]


def where(namespace: str, path: str, subscription: str | None) -> dict[str, Any]:
    """Return the parameters that name an entity to the server."""
    named = {"namespace": namespace, "entity": path}
    return named if subscription is None else {**named, "subscription": subscription}


def sub_queue(dead_letter: bool, transfer_dead_letter: bool) -> str:
    if transfer_dead_letter:
        return "transfer-dead-letter"
    return "dead-letter" if dead_letter else "main"
