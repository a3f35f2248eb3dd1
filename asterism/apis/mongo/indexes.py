"""Commands about indexes."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.administration import batch_size_of, read_specified_collation, slices_of
from asterism.apis.mongo.arguments import NUMBER, TRUTH, as_bool, as_int, check_new_collection_name
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Answer, Command, FieldRule, Target
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document

_INDEXES_MAX = 64
_OBJECT, _TEXT, _BOOL, _ARRAY = ("object",), ("string",), ("bool",), ("array",)
_INDEX_OPTIONS: dict[str, tuple[str, ...]] = {
    "unique": TRUTH,
    "sparse": TRUTH,
    "background": TRUTH,
    "hidden": TRUTH,
    "expireAfterSeconds": NUMBER,
    "partialFilterExpression": _OBJECT,
    "collation": _OBJECT,
    "wildcardProjection": _OBJECT,
    "weights": ("object", "string"),
    "default_language": _TEXT,
    "language_override": _TEXT,
    "textIndexVersion": NUMBER,
    "2dsphereIndexVersion": NUMBER,
    "bits": NUMBER,
    "min": NUMBER,
    "max": NUMBER,
    "v": NUMBER,
    "ns": _TEXT,
    "storageEngine": _OBJECT,
    "prepareUnique": _BOOL,
    "clustered": _BOOL,
    "dropDups": TRUTH,
}
_SPECIAL_KINDS = frozenset({"text", "hashed", "2d", "2dsphere", "geoHaystack"})
_FLAGS_LEFT_OUT = frozenset({"background", "v", "ns", "dropDups"})


async def create_indexes(call: Call) -> Document:
    check_new_collection_name(call.database, call.target)
    specifications = call.body["indexes"]
    if not specifications:
        raise MongoFailure(2, "Must specify at least one index to create")
    wanted = [read_index(specification) for specification in specifications]
    record = call.record()
    was_created = record is None
    if record is not None and record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    if record is None:
        record = await call.store.create(call.account, call.database, call.target, {})
    before = len(record.indexes)
    new: list[IndexRecord] = []
    for index in wanted:
        if not _exists(record, (*record.indexes, *new), index):
            new.append(index)
    if before + len(new) > _INDEXES_MAX:
        raise MongoFailure(67, f"add index fails, too many indexes for {call.namespace}")
    if new:
        record = await call.store.create_indexes(call.account, record, new)
    answer: Document = {
        "numIndexesBefore": before,
        "numIndexesAfter": before + len(new),
        "createdCollectionAutomatically": was_created,
    }
    if not new:
        answer["note"] = "all indexes already exist"
    return answer


def _exists(record: CollectionRecord, known: tuple[IndexRecord, ...], index: IndexRecord) -> bool:
    for other in known:
        same_key = list(other.key) == list(index.key) and equal(other.key, index.key)
        if other.name == ID_INDEX and list(index.key) == ["_id"] and is_number(index.key["_id"]):
            return True
        same_options = _compared(other.options) == _compared(index.options)
        if other.name == index.name:
            if same_key and same_options:
                return True
            if not same_key:
                raise MongoFailure(
                    86, f"An existing index has the same name as the requested index: {record.namespace} {index.name}"
                )
            raise MongoFailure(85, f"An equivalent index exists with other options: {index.name}")
        if same_key and _identity(other.options) == _identity(index.options):
            raise MongoFailure(85, f"Index already exists with a different name: {other.name}")
    return False


def _compared(options: Document) -> Document:
    return {name: value for name, value in options.items() if name != "hidden"}


def _identity(options: Document) -> tuple[Any, ...]:
    return tuple(repr(options.get(name)) for name in ("collation", "partialFilterExpression"))


def read_index(specification: Any) -> IndexRecord:
    """Return an index of a client's specification; MongoFailure for one that cannot be."""
    if not isinstance(specification, dict):
        raise MongoFailure(14, "The elements of the 'indexes' array must be objects")
    if "key" not in specification:
        raise MongoFailure(9, "The 'key' field is a required property of an index specification")
    key = specification["key"]
    if not isinstance(key, dict):
        raise MongoFailure(14, "The field 'key' must be an object")
    _check_key(key)
    name = specification.get("name")
    if name is None:
        raise MongoFailure(9, "The 'name' field is a required property of an index specification")
    if not isinstance(name, str):
        raise MongoFailure(14, "The field 'name' must be a string")
    if not name or name == "*":
        raise MongoFailure(67 if not name else 2, f"The index name '{name}' is not valid")
    options: Document = {}
    for option, value in specification.items():
        if option in ("key", "name"):
            continue
        types = _INDEX_OPTIONS.get(option)
        if types is None:
            raise MongoFailure(197, f"The field '{option}' is not valid for an index specification")

        if type_name(value) not in types:
            raise MongoFailure(14, f"The field '{option}' has the wrong type {type_name(value)}")
        if option not in _FLAGS_LEFT_OUT:
            options[option] = as_bool(value) if option in ("unique", "sparse", "hidden") else value
    for flag in ("unique", "sparse", "hidden"):
        if options.get(flag) is False:
            del options[flag]
    if "expireAfterSeconds" in options:
        seconds = as_int(options["expireAfterSeconds"])
        if len(key) != 1 or list(key) == ["_id"]:
            raise MongoFailure(67, "TTL indexes are single-field indexes, and not on _id")
        if not 0 <= seconds <= 2**31 - 1:
            raise MongoFailure(67, "TTL index 'expireAfterSeconds' option must be within an acceptable range")
        options["expireAfterSeconds"] = seconds
    if "partialFilterExpression" in options and options.get("sparse"):
        raise MongoFailure(67, 'cannot mix "partialFilterExpression" and "sparse" options')
    if "hashed" in key.values() and options.get("unique"):
        raise MongoFailure(16764, "Currently hashed indexes cannot guarantee uniqueness")
    if "collation" in options:
        options["collation"] = read_specified_collation(options["collation"])
        if not options["collation"]:
            del options["collation"]
    return IndexRecord(0, name, key, options)


def _check_key(key: Document) -> None:
    if not key:
        raise MongoFailure(67, "Index keys cannot be an empty object.")
    for path, direction in key.items():
        if not path or path.startswith(".") or path.endswith(".") or ".." in path:
            raise MongoFailure(67, f"Index keys cannot contain an empty field: '{path}'")
        if path.startswith("$") and path != "$**":
            raise MongoFailure(67, f"Index key contains an illegal field name: '{path}'")
        if isinstance(direction, str):
            if direction not in _SPECIAL_KINDS:
                raise MongoFailure(67, f"Unknown index plugin '{direction}'")
        elif not is_number(direction) or not direction or direction != direction:
            raise MongoFailure(67, "Values in an index key pattern must be numbers other than 0, or names of kinds")


async def list_indexes(call: Call) -> Answer:
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"ns does not exist: {call.namespace}")
    if record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    shown = [{"v": 2, "key": index.key, "name": index.name, **index.options} for index in record.indexes]
    return await call.context.cursors.open(call, call.namespace, slices_of(shown), batch_size=batch_size_of(call))


async def drop_indexes(call: Call) -> Document:
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"ns not found {call.namespace}")
    wanted = call.body["index"]
    names = _names_to_drop(record, wanted)
    before = len(record.indexes)
    await call.store.drop_indexes(call.account, record, names)
    answer: Document = {"nIndexesWas": before}
    if wanted == "*":
        answer["msg"] = "non-_id indexes dropped for collection"
    return answer


def _names_to_drop(record: CollectionRecord, wanted: Any) -> list[str]:
    if wanted == "*":
        return [index.name for index in record.indexes if index.name != ID_INDEX]
    if isinstance(wanted, dict):
        found = [index.name for index in record.indexes if equal(index.key, wanted)]
        if not found:
            raise MongoFailure(27, f"can't find index with key: {wanted}")
        names = found[:1]
    else:
        names = wanted if isinstance(wanted, list) else [wanted]
    for name in names:
        if not isinstance(name, str):
            raise MongoFailure(14, "BSON field 'dropIndexes.index' is the wrong type")
        if name == ID_INDEX:
            raise MongoFailure(72, "cannot drop _id index")
        if record.index(name) is None:
            raise MongoFailure(27, f"index not found with name [{name}]")
    return names


_CURSOR = {"cursor": FieldRule(_OBJECT)}

COMMANDS = (
    Command("createIndexes", create_indexes, "Create indexes.", target=Target.COLLECTION, access=Access.DATABASE_ADMIN,
            fields={"indexes": FieldRule(_ARRAY, is_required=True, null_code=40414), "commitQuorum": FieldRule()},
            in_transaction=True, api_version_1=True),
    Command("listIndexes", list_indexes, "The indexes.", target=Target.COLLECTION, access=Access.READ, fields=_CURSOR,
            api_version_1=True),
    Command("dropIndexes", drop_indexes, "Drop indexes.", aliases=("deleteIndexes",), target=Target.COLLECTION,
            access=Access.DATABASE_ADMIN, fields={"index": FieldRule(is_required=True)}, api_version_1=True),
)  # fmt: skip
