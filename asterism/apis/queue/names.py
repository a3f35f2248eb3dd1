"""Names of queues, and the resources that paths name."""

from __future__ import annotations

import re
from typing import Final, Literal

from asterism.apis.storage.address import Address
from asterism.apis.storage.call import Resource
from asterism.apis.storage.refusals import invalid_resource_name, invalid_uri, name_out_of_range

Kind = Literal["service", "queue", "messages", "message"]

_NAME: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9])*", re.ASCII)
NAME_LENGTHS: Final = range(3, 64)
_MESSAGES: Final = "messages"


def check_name(name: str) -> None:
    if len(name) not in NAME_LENGTHS:
        raise name_out_of_range()
    if not _NAME.fullmatch(name):
        raise invalid_resource_name()


def path_behind_account(address: Address) -> str:
    """Return the path that names a queue. Clients put the path of a secondary endpoint before that of the primary one,
    so the account may stand there twice: a queue with its name is not reached at such an endpoint."""
    first, _, rest = address.resource.partition("/")
    is_twice = address.is_secondary and bool(address.base_path) and first == address.account
    return rest if is_twice else address.resource


def read_resource(path: str) -> Resource:
    """Return the resource of a path behind the account; refuse a path that no queue can have."""
    queue, *rest = path.removesuffix("/").split("/")
    if not queue and not rest:
        return Resource("service")
    check_name(queue)
    match rest:
        case []:
            return Resource("queue", queue)
        case [messages] if messages == _MESSAGES:
            return Resource("messages", queue)
        case [messages, message_id] if messages == _MESSAGES:
            return Resource("message", queue, message_id)
        case _:
            raise invalid_uri()
