"""The attach of a client, taken apart, and the answers to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from asterism.apis.amqp.engine.performatives import is_uint
from asterism.apis.amqp.nodes import AmqpError, Attach, AttachReply, Peer
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import Array, Described, InvalidAmqp, Symbol, UByte, UInt, ULong

_SOURCE_FIELDS: Final = 11
_SOURCE_DYNAMIC: Final = 4
_SOURCE_FILTER: Final = 7
_TARGET_FIELDS: Final = 7
_COORDINATORS: Final = (0x30, "amqp:coordinator:list")
_SETTLED: Final = 1


@dataclass(slots=True)
class AttachFields:
    """A client's attach. The settle modes are as they came, null for the default."""

    name: str
    handle: int
    # The client receives, from a source of this side; otherwise it sends to a target of this side.
    is_receiver: bool
    sender_mode: UByte | None
    receiver_mode: UByte | None
    source: Described | None
    target: Described | None
    properties: Mapping[str, Any]
    desired_capabilities: Sequence[str]

    @property
    def address(self) -> str:
        return address_of(self.source if self.is_receiver else self.target)

    @property
    def is_for_coordinator(self) -> bool:
        return not self.is_receiver and self.target is not None and self.target.descriptor in _COORDINATORS

    @property
    def is_dynamic(self) -> bool:
        """True if the client leaves the address of the node to this side."""
        terminus = self.source if self.is_receiver else self.target
        return not self.is_for_coordinator and terminus is not None and terminus.value[_SOURCE_DYNAMIC] is True

    def for_node(self, peer: Peer, end: Callable[[AmqpError], None]) -> Attach:
        """Return the request as nodes see it, with the way to end the link."""
        return Attach(
            peer=peer,
            link_name=self.name,
            address=self.address,
            filters=self._filters(),
            properties=self.properties,
            desired_capabilities=self.desired_capabilities,
            is_presettled=self.sender_mode == _SETTLED,
            source=self.source,
            target=self.target,
            end=end,
        )

    def answer(self, reply: AttachReply) -> list[Any]:
        """Return the fields of the attach that agrees: everything is echoed but for the words of the node."""
        source = self.source
        if reply.filters and source is not None:
            fields = list(source.value)
            fields[_SOURCE_FILTER] = _settled_filters(fields[_SOURCE_FILTER] or {}, reply.filters)
            source = Described(source.descriptor, fields)
        offered = Array.of(Symbol, reply.offered_capabilities) if reply.offered_capabilities else None
        properties = {Symbol(key): value for key, value in reply.properties.items()} or None
        return [
            *self._first_fields(source, self.target),
            None,
            None,
            # Clients that receive refuse an answer without it.
            UInt(0) if self.is_receiver else None,
            None if self.is_receiver else ULong(reply.max_message_bytes),
            offered,
            None,
            properties,
        ]

    def without_content(self) -> AttachFields:
        """Return the same for a link that is open, which needs neither termini nor properties any more."""
        return replace(self, source=None, target=None, properties={}, desired_capabilities=())

    def refusal(self) -> list[Any]:
        """Return the fields of the attach that refuses, in front of a detach: without the terminus of this side."""
        fields = self._first_fields(
            None if self.is_receiver else self.source, self.target if self.is_receiver else None
        )
        return [*fields, None, None, UInt(0) if self.is_receiver else None]

    def _first_fields(self, source: Described | None, target: Described | None) -> list[Any]:
        role = not self.is_receiver
        return [self.name, UInt(self.handle), role, self.sender_mode, self.receiver_mode, source, target]

    def _filters(self) -> dict[str, Any]:
        if not self.is_receiver or self.source is None:
            return {}
        filters = self.source.value[_SOURCE_FILTER]
        if not isinstance(filters, dict):
            return {}
        return {str(key): value.value if isinstance(value, Described) else value for key, value in filters.items()}


def parse_attach(fields: list[Any]) -> AttachFields:
    """Return the attach that the fields say. Raises InvalidAmqp."""
    name, handle, role, sender_mode, receiver_mode, source, target = fields[:7]
    desired, properties = fields[12], fields[13]
    name = text_of(name)
    if name is None or not is_uint(handle) or not isinstance(role, bool):
        raise InvalidAmqp("the attach lacks a name, a handle or a role")
    if not isinstance(sender_mode, UByte | None) or not isinstance(receiver_mode, UByte | None):
        raise InvalidAmqp("a settle mode does not have its type")
    if not isinstance(properties, dict | None):
        raise InvalidAmqp("the properties of the link are not a map")
    return AttachFields(
        name=name,
        handle=handle,
        is_receiver=role,
        sender_mode=sender_mode,
        receiver_mode=receiver_mode,
        source=_terminus(source, _SOURCE_FIELDS),
        target=_terminus(target, _TARGET_FIELDS),
        properties={str(key): value for key, value in (properties or {}).items()},
        desired_capabilities=_texts(desired),
    )


def address_of(terminus: Described | None) -> str:
    """Return the address of a source or target without scheme, host and leading slash; "" without an address."""
    if terminus is None or not terminus.value:
        return ""
    return without_host(text_of(terminus.value[0]) or "")


def without_host(address: str) -> str:
    """Return an address such as `amqps://host:5671/queue` without its beginning; others lose a leading slash."""
    _, has_scheme, rest = address.partition("://")
    return rest.partition("/")[2] if has_scheme else address.removeprefix("/")


def _terminus(value: Any, field_count: int) -> Described | None:
    if value is None:
        return None
    if not isinstance(value, Described) or type(value.value) is not list:
        raise InvalidAmqp("a source or target is not a described list")
    fields = value.value
    # A coordinator is a target, with a list of its own.
    if field_count != _TARGET_FIELDS or value.descriptor not in _COORDINATORS:
        if len(fields) > field_count:
            raise InvalidAmqp("a source or target has more fields than are known")
        fields = fields + [None] * (field_count - len(fields))
    return Described(value.descriptor, fields)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, Symbol):
        return (str(value),)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _settled_filters(filters: dict[Any, Any], settled: Mapping[str, Any]) -> dict[Any, Any]:
    echoed = {key: settled.get(str(key), value) for key, value in filters.items()}
    known = {str(key) for key in filters}
    return {**echoed, **{Symbol(key): value for key, value in settled.items() if key not in known}}
