"""Entities as JSON: from the body of a request to stored properties, and from those to an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, cast

from asterism.apis.storage.refusals import Refusal, invalid_input
from asterism.apis.table.entities.entity_keys import entity_reference
from asterism.apis.table.entities.property_values import READERS, unknown_type, untyped
from asterism.apis.table.errors import FAILURES, properties_need_value, too_many_properties
from asterism.apis.table.etags import etag_of_timestamp
from asterism.errors import MalformedRequest
from asterism.models.tables.codec import ANNOTATION, PROPERTIES_MAX, decode, encode, excess, has_annotations
from asterism.models.tables.entities import StoredEntity
from asterism.models.tables.keys import EntityKeys
from asterism.models.tables.property_types import ANNOTATED, EdmType, Kept
from asterism.values.json.text import dumps, loads
from asterism.values.ticks import timestamp_text

# The service's limit.
PROPERTY_NAME_CHARACTERS_MAX: Final = 255
# Each property with its annotation.
_MEMBERS_MAX: Final = 2 * PROPERTIES_MAX
# Including members without a value, and annotations without a property.
_BODY_MEMBERS_MAX: Final = 40 * PROPERTIES_MAX
_PARTITION_KEY: Final = "PartitionKey"
_ROW_KEY: Final = "RowKey"
_TIMESTAMP: Final = "Timestamp"
_SYSTEM: Final = frozenset({_PARTITION_KEY, _ROW_KEY, _TIMESTAMP})
_STRING: Final = EdmType.STRING.value
_DOUBLE: Final = EdmType.DOUBLE.value

# Names of the selected properties, in the order of the answer.
Selection = Mapping[str, None]


class Metadata(StrEnum):
    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


class TableUrl(NamedTuple):
    """The address of a table, for the parts of an answer that name it."""

    # For example http://127.0.0.1:10002/devstoreaccount1
    base: str
    account: str
    table: str


class GivenEntity(NamedTuple):
    keys: dict[str, object]
    properties: bytes

    def body_keys(self) -> EntityKeys:
        """Return the keys of an insert, which only the body names."""
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
    """Read the entity in a body, checked property by property."""
    try:
        given = loads(body)
    except MalformedRequest as error:
        raise invalid_input(f"The body of the request is not valid. {error.reason}") from None
    if type(given) is not dict:
        raise invalid_input("The body of the request is not an entity.")
    if len(given) > _BODY_MEMBERS_MAX:
        raise too_many_properties()
    members: dict[str, Kept] = {}
    keys: dict[str, object] = {}
    # The name of an annotation contains this character, possibly as an escape.
    is_annotated = b"@" in body or b"\\u" in body
    for name, value in cast("dict[str, object]", given).items():
        if (is_annotated and "@" in name) or name.startswith("odata."):
            continue
        annotation = given.get(name + ANNOTATION) if is_annotated else None
        if name in _SYSTEM:
            keys[name] = value
            if annotation is not None:
                keys[name + ANNOTATION] = annotation
            continue
        if value is None or (is_cosmos and name == "Etag"):
            # A null is not a value: an insert leaves it out, a merge leaves the stored property.
            continue
        if not name.isidentifier() or len(name) > PROPERTY_NAME_CHARACTERS_MAX:
            raise _bad_name(name)
        if len(members) > _MEMBERS_MAX:
            # A body has room for hundreds of thousands; the rest is not examined.
            raise too_many_properties()
        if annotation is None:
            members[name] = untyped(name, value)
        else:
            _add_typed(members, name, value, annotation)
    properties = encode(members)
    reason = excess(properties, members)
    if reason is not None:
        raise FAILURES[reason]()
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
    entity: StoredEntity, url: TableUrl, level: Metadata, selected: Selection | None, *, kind: str = ""
) -> bytes:
    """Write an answer that is a single entity; `kind` follows the table's name in its metadata link."""
    head = b"" if level is Metadata.NONE else b'"odata.metadata":%b,' % _metadata_link(url, kind)
    return b"{%b%b}" % (head, _members(entity, url, level, selected))


def write_page(entities: Sequence[StoredEntity], url: TableUrl, level: Metadata, selected: Selection | None) -> bytes:
    head = b"" if level is Metadata.NONE else b'"odata.metadata":%b,' % _metadata_link(url, "")
    rows = b"},{".join([_members(entity, url, level, selected) for entity in entities])
    return b'{%b"value":[%b]}' % (head, b"{%b}" % rows if entities else b"")


def _metadata_link(url: TableUrl, kind: str) -> bytes:
    return dumps(f"{url.base}/$metadata#{url.table}{kind}")


def _members(entity: StoredEntity, url: TableUrl, level: Metadata, selected: Selection | None) -> bytes:
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
        reference = entity_reference(url.table, EntityKeys(partition_key, row_key))
        members["odata.type"] = f"{url.account}.{url.table}"
        members["odata.id"] = f"{url.base}/{reference}"
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
    """Return the selected properties. A property that the entity does not have is left out, not null."""
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
