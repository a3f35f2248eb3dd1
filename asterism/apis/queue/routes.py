"""The operations of the door, one line each."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.queue import messages, queues
from asterism.apis.queue.context import QueueContext
from asterism.apis.queue.message_xml import BODY_BYTES_MAX, TEXT_BYTES_MAX
from asterism.apis.storage import service_calls
from asterism.apis.storage.routes import Needs, Route
from asterism.apis.storage.xml_text import DOCUMENT_BYTES_MAX

Routes = tuple[Route[QueueContext], ...]

_SERVICE: Final = ResourceType.SERVICE
_CONTAINER: Final = ResourceType.CONTAINER
_OBJECT: Final = ResourceType.OBJECT

_OF_SERVICE: Final[Routes] = (
    Route(
        "GET",
        "service",
        "list_queues",
        queues.list_queues,
        "The queues of the account, in pages.",
        comp="list",
        needs=Needs(_SERVICE, "l"),
        looks_first=True,
    ),
    Route(
        "GET",
        "service",
        "read_properties",
        service_calls.get_properties,
        "The service's properties.",
        comp="properties",
        restype="service",
        needs=service_calls.READ_SERVICE,
    ),
    Route(
        "PUT",
        "service",
        "set_properties",
        service_calls.set_properties,
        "Set the service's properties.",
        comp="properties",
        restype="service",
        needs=service_calls.WRITE_SERVICE,
        body_bytes_max=DOCUMENT_BYTES_MAX,
    ),
    Route(
        "GET",
        "service",
        "read_statistics",
        service_calls.get_statistics,
        "The secondary location's delay.",
        comp="stats",
        restype="service",
        needs=service_calls.READ_SERVICE,
    ),
    Route(
        "POST",
        "service",
        "get_user_delegation_key",
        service_calls.get_user_delegation_key,
        "A key with which a user signs access to queues.",
        comp="userdelegationkey",
        restype="service",
        body_bytes_max=DOCUMENT_BYTES_MAX,
        is_write=False,
    ),
)

_OF_QUEUES: Final[Routes] = (
    Route(
        "PUT",
        "queue",
        "create_queue",
        queues.create_queue,
        "Create a queue.",
        needs=Needs(_CONTAINER, "c|w"),
        looks_first=True,
    ),
    Route(
        "DELETE",
        "queue",
        "delete_queue",
        queues.delete_queue,
        "Delete a queue with its messages.",
        needs=Needs(_CONTAINER, "d"),
    ),
    *(
        Route(
            method,
            "queue",
            "read_metadata",
            queues.get_metadata,
            "A queue's metadata and the number of its messages.",
            comp="metadata",
            needs=Needs(_CONTAINER, "r", "r"),
        )
        for method in ("GET", "HEAD")
    ),
    Route(
        "PUT",
        "queue",
        "set_metadata",
        queues.set_metadata,
        "Set a queue's metadata.",
        comp="metadata",
        needs=Needs(_CONTAINER, "w"),
    ),
    *(
        Route(method, "queue", "read_policies", queues.get_policies, "A queue's access policies.", comp="acl")
        for method in ("GET", "HEAD")
    ),
    Route(
        "PUT",
        "queue",
        "set_policies",
        queues.set_policies,
        "Set a queue's access policies.",
        comp="acl",
        body_bytes_max=DOCUMENT_BYTES_MAX,
    ),
)

_OF_MESSAGES: Final[Routes] = (
    Route(
        "POST",
        "messages",
        "put_message",
        messages.put_message,
        "Put a message into a queue.",
        needs=Needs(_OBJECT, "a", "a"),
        body_bytes_max=BODY_BYTES_MAX,
        shown_bytes_max=TEXT_BYTES_MAX,
    ),
    # A get takes messages: the secondary location refuses it, and has its own permission.
    Route("GET", "messages", "get_messages", messages.get_or_peek, "Take messages for a time, or look at some."),
    Route(
        "DELETE",
        "messages",
        "clear_messages",
        messages.clear_messages,
        "Remove all messages of a queue.",
        needs=Needs(_OBJECT, "d"),
    ),
    Route(
        "PUT",
        "message",
        "update_message",
        messages.update_message,
        "Change when a message is visible, and perhaps its text.",
        needs=Needs(_OBJECT, "u", "u"),
        body_bytes_max=BODY_BYTES_MAX,
        shown_bytes_max=TEXT_BYTES_MAX,
    ),
    Route(
        "DELETE",
        "message",
        "delete_message",
        messages.delete_message,
        "Delete a message.",
        needs=Needs(_OBJECT, "p|d", "p"),
    ),
)

ROUTES: Final[Routes] = (*_OF_SERVICE, *_OF_QUEUES, *_OF_MESSAGES)
