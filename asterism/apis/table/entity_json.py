"""Entities as JSON: from a request's body to what is stored, and from that to an answer at its metadata level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, cast

from asterism.apis.table.edm import ANNOTATED, READERS, EdmType, Kept, unknown_type, untyped
from asterism.apis.table.entity_codec import ANNOTATION, PROPERTIES_MAX, decode, encode, excess, has_annotations
from asterism.apis.table.entity_keys import EntityKeys, entity_reference
from asterism.apis.table.errors import (
    Refusal,
    entity_too_large,
    invalid_input,
    properties_need_value,
    too_many_properties,
)
from asterism.apis.table.stored import FailureReason, StoredEntity
from asterism.apis.table.timestamps import etag_of_timestamp, timestamp_text
from asterism.errors import MalformedRequest
from asterism.values.json_text import dumps, loads

# The service's limit.
PROPERTY_NAME_CHARACTERS_MAX: Final = 255
# Each property with its annotation.
_MEMBERS_MAX: Final = 2 * PROPERTIES_MAX
# With those that have no value, and annotations of nothing.
_BODY_MEMBERS_MAX: Final = 40 * PROPERTIES_MAX
_PARTITION_KEY: Final = "PartitionKey"
_ROW_KEY: Final = "RowKey"
_TIMESTAMP: Final = "Timestamp"
_SYSTEM: Final = frozenset({_PARTITION_KEY, _ROW_KEY, _TIMESTAMP})
_STRING: Final = EdmType.STRING.value
_DOUBLE: Final = EdmType.DOUBLE.value

EXCESS_REFUSALS: Final = {
    FailureReason.TOO_MANY_PROPERTIES: too_many_properties,
    FailureReason.TOO_LARGE: entity_too_large,
}


# Names of properties in the order in which they are wanted, found without a search.
Selection = Mapping[str, None]


class Metadata(StrEnum):
    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


class Place(NamedTuple):
    """Where a table is on the wire, for the parts of an answer that name it."""

    # For example http://127.0.0.1:10002/devstoreaccount1
    base: str
    account: str
    table: str


class GivenEntity(NamedTuple):
    keys: dict[str, object]
    properties: bytes

    def body_keys(self) -> EntityKeys:
        """The keys of an insert, which only the body tells."""
        partition_key, row_key = self.keys.get(_PARTITION_KEY), self.keys.get(_ROW_KEY)
        if partition_key is None or row_key is None:
            raise properties_need_value()
        if type(partition_key) is not str or type(row_key) is not str:
            raise invalid_input("The keys of an entity are texts.")
        self.check_types()
        return EntityKeys(partition_key, row_key)

    def check_types(self) -> None:
        for name in (_PARTITION_KEY, _ROW_KEY):
            if self.keys.get(name + ANNOTATION, _STRING) != _STRING or type(self.keys.get(name, "")) is not str:
                raise invalid_input(f"The {name} of an entity is a text.")


def read_entity(body: bytes, *, is_cosmos: bool) -> GivenEntity:
    """What a body says, checked property by property."""
    try:
        told = loads(body)
    except MalformedRequest as error:
        raise invalid_input(f"The body of the request is not valid. {error.reason}") from None
    if type(told) is not dict:
        raise invalid_input("The body of the request is no entity.")
    if len(told) > _BODY_MEMBERS_MAX:
        raise too_many_properties()
    members: dict[str, Kept] = {}
    keys: dict[str, object] = {}
    # An annotation has this sign in its name, if not as an escape.
    is_annotated = b"@" in body or b"\\u" in body
    for name, value in cast("dict[str, object]", told).items():
        if (is_annotated and "@" in name) or name.startswith("odata."):
            continue
        annotation = told.get(name + ANNOTATION) if is_annotated else None
        if name in _SYSTEM:
            keys[name] = value
            if annotation is not None:
                keys[name + ANNOTATION] = annotation
            continue
        if value is None or (is_cosmos and name == "Etag"):
            # A null is no value: on an insert it is left out, on a merge it leaves what is stored.
            continue
        if not name.isidentifier() or len(name) > PROPERTY_NAME_CHARACTERS_MAX:
            raise _bad_name(name)
        if len(members) > _MEMBERS_MAX:
            # A body has room for hundreds of thousands; what comes behind is not looked at.
            raise too_many_properties()
        if annotation is None:
            members[name] = untyped(name, value)
        else:
            _add_typed(members, name, value, annotation)
    properties = encode(members)
    reason = excess(properties, members)
    if reason is not None:
        raise EXCESS_REFUSALS[reason]()
    return GivenEntity(keys, properties)


def _add_typed(members: dict[str, Kept], name: str, value: object, annotation: object) -> None:
    reader = READERS.get(annotation) if type(annotation) is str else None
    if reader is None or type(annotation) is not str:
        raise unknown_type(name, annotation)
    kept = reader(name, value)
    if annotation in ANNOTATED or (annotation == _DOUBLE and type(kept) is str):
        members[name + ANNOTATION] = annotation
    members[name] = kept


def _bad_name(name: str) -> Refusal:
    if len(name) > PROPERTY_NAME_CHARACTERS_MAX:
        return Refusal(
            400, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255 characters)."
        )
    return Refusal(400, "PropertyNameInvalid", "The property name is invalid.")


# --- answers --------------------------------------------------------------------------------------------------------


def write_entity(
    entity: StoredEntity, place: Place, level: Metadata, selected: Selection | None, *, kind: str = ""
) -> bytes:
    """One entity as an answer of its own; `kind` is what its metadata link calls it beyond the table."""
    head = b"" if level is Metadata.NONE else b'"odata.metadata":%b,' % _metadata_link(place, kind)
    return b"{%b%b}" % (head, _members(entity, place, level, selected))


def write_page(entities: Sequence[StoredEntity], place: Place, level: Metadata, selected: Selection | None) -> bytes:
    head = b"" if level is Metadata.NONE else b'"odata.metadata":%b,' % _metadata_link(place, "")
    rows = b"},{".join([_members(entity, place, level, selected) for entity in entities])
    return b'{%b"value":[%b]}' % (head, b"{%b}" % rows if entities else b"")


def _metadata_link(place: Place, kind: str) -> bytes:
    return dumps(f"{place.base}/$metadata#{place.table}{kind}")


def _members(entity: StoredEntity, place: Place, level: Metadata, selected: Selection | None) -> bytes:
    partition_key, row_key, etag_time, properties = entity
    timestamp = timestamp_text(etag_time)
    if level is Metadata.MINIMAL and selected is None:
        # Nearly every answer: nothing is decoded.
        return b'"odata.etag":%b,"PartitionKey":%b,"RowKey":%b,"Timestamp":"%b"%b%b' % (
            dumps(etag_of_timestamp(timestamp)),
            dumps(partition_key),
            dumps(row_key),
            timestamp.encode(),
            b"," if properties else b"",
            properties,
        )
    members: dict[str, object] = {}
    if level is Metadata.FULL:
        reference = entity_reference(place.table, EntityKeys(partition_key, row_key))
        members["odata.type"] = f"{place.account}.{place.table}"
        members["odata.id"] = f"{place.base}/{reference}"
    if level is not Metadata.NONE:
        members["odata.etag"] = etag_of_timestamp(timestamp)
    if level is Metadata.FULL:
        members["odata.editLink"] = reference
    _add_system(members, entity, timestamp, level, selected)
    tail = properties if selected is None else _selected_properties(properties, selected)
    if level is Metadata.NONE and has_annotations(tail):
        kept = decode(tail)
        tail = encode({name: value for name, value in kept.items() if not name.endswith(ANNOTATION)})
    head = dumps(members)[1:-1]
    return b"%b,%b" % (head, tail) if head and tail else head or tail


def _add_system(
    members: dict[str, object], entity: StoredEntity, timestamp: str, level: Metadata, selected: Selection | None
) -> None:
    if selected is None or _PARTITION_KEY in selected:
        members[_PARTITION_KEY] = entity.partition_key
    if selected is None or _ROW_KEY in selected:
        members[_ROW_KEY] = entity.row_key
    if selected is None or _TIMESTAMP in selected:
        if level is Metadata.FULL:
            members[_TIMESTAMP + ANNOTATION] = EdmType.DATETIME.value
        members[_TIMESTAMP] = timestamp


def _selected_properties(properties: bytes, selected: Selection) -> bytes:
    """Of what is stored, the properties asked for. One that an entity does not have is left out, not null."""
    if not properties:
        return b""
    members = decode(properties)
    chosen: dict[str, Kept] = {}
    # A URL has room for thousands of names, an entity for a few hundred.
    names = selected if len(selected) <= len(members) else [name for name in members if name in selected]
    for name in names:
        value = members.get(name)
        if value is None or "@" in name:
            continue
        annotation = members.get(name + ANNOTATION)
        if annotation is not None:
            chosen[name + ANNOTATION] = annotation
        chosen[name] = value
    return encode(chosen)
