"""The command `create`: collections, capped and clustered ones, time series, views."""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.administration.options.clustered import read_clustered
from asterism.apis.mongo.administration.options.encrypted_fields import check_encrypted_fields
from asterism.apis.mongo.administration.options.expiry import read_expiry
from asterism.apis.mongo.administration.options.id_index import check_id_index
from asterism.apis.mongo.administration.options.images import IMAGES, read_images
from asterism.apis.mongo.administration.options.sizes import read_max, read_size, shown_number
from asterism.apis.mongo.administration.options.storage_engine import check_index_defaults, check_storage_engine
from asterism.apis.mongo.administration.options.time_series import read_time_series
from asterism.apis.mongo.administration.options.validators import check_choices, check_validator
from asterism.apis.mongo.administration.options.view_pipelines import check_view
from asterism.apis.mongo.arguments import ARRAY, BOOL, NUMBER, OBJECT, TEXT, TRUTH, check_new_collection_name
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule, Target
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.apis.mongo.data.targets import create_collection
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.collations import stored_collation
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.results import CollectionExists
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document

_FIELDS: Final = {
    "capped": FieldRule(TRUTH),
    "autoIndexId": FieldRule(TRUTH),
    "size": FieldRule(NUMBER),
    "max": FieldRule(NUMBER),
    "viewOn": FieldRule(TEXT),
    "pipeline": FieldRule(ARRAY),
    "collation": FieldRule(OBJECT),
    "validator": FieldRule(OBJECT),
    "validationLevel": FieldRule(TEXT),
    "validationAction": FieldRule(TEXT),
    "storageEngine": FieldRule(OBJECT),
    "indexOptionDefaults": FieldRule(OBJECT),
    "timeseries": FieldRule(OBJECT),
    "clusteredIndex": FieldRule(("object", *TRUTH), null_code=14),
    IMAGES: FieldRule(OBJECT),
    "expireAfterSeconds": FieldRule(NUMBER),
    "encryptedFields": FieldRule(OBJECT),
    "idIndex": FieldRule(OBJECT),
    "temp": FieldRule(BOOL),
    "flags": FieldRule(NUMBER),
}
# Names under `system.` that a client may create.
_SYSTEM_NAMES: Final = frozenset({"system.js", "system.profile", "system.users", "system.version", "system.views"})
_BUCKETS: Final = "system.buckets."


async def create(call: Call) -> Document:
    name = call.target
    check_new_collection_name(call.database, name)
    check_system_name(call, name)
    options = read_create_options(call)
    existing = call.record()
    if existing is not None:
        # Within a transaction it is an error even if nothing differs, as it is for MongoDB.
        if call.unit is None and equal(existing.options, options):
            return {}
        raise MongoFailure(
            48, f"namespace {call.namespace} already exists, but with different options: {existing.options}"
        )
    try:
        await create_collection(call, call.database, name, options, indexes=_first_indexes(options))
    except CollectionExists as problem:
        raise MongoFailure(48, f"Collection {call.namespace} already exists.") from problem
    return {}


def _first_indexes(options: Document) -> list[IndexRecord]:
    """Return the index that a time series with a meta field has from the beginning."""
    series = options.get("timeseries", {})
    if "metaField" not in series:
        return []
    meta, time = series["metaField"], series["timeField"]
    return [IndexRecord(1, f"{meta}_1_{time}_1", {meta: 1, time: 1})]


def check_system_name(call: Call, name: str) -> None:
    if name.startswith(_BUCKETS):
        raise MongoFailure(20, "The buckets of a time series collection are not collections of their own here")
    if name.startswith("system.") and name not in _SYSTEM_NAMES and call.database not in ("admin", "config", "local"):
        raise MongoFailure(73, f"Invalid system namespace: {call.namespace}")


def read_create_options(call: Call) -> Document:
    """Return the options of a collection as they are stored; refuse those that cannot be, also together."""
    body = call.body
    given = {name: body[name] for name in _FIELDS if body.get(name) is not None}
    check_choices(given)
    if "storageEngine" in given:
        check_storage_engine(given["storageEngine"])
    if "indexOptionDefaults" in given:
        check_index_defaults(given["indexOptionDefaults"])
    if "encryptedFields" in given:
        check_encrypted_fields(given["encryptedFields"], given)
    images = IMAGES in given and read_images("create", given[IMAGES])
    options = _kind_options(call, given)
    collation = stored_collation(given["collation"]) if given.get("collation") else None
    if "collation" in given and not given["collation"]:
        raise MongoFailure(40414, "BSON field 'collation.locale' is missing but a required field")
    if "idIndex" in given:
        check_id_index(given["idIndex"], collation)
    if collation is not None:
        options["collation"] = collation
    if "viewOn" in given:
        return options
    if "validator" in given:
        check_validator(call, call.target, given["validator"])
    for name in ("validator", "validationLevel", "validationAction"):
        if name in given:
            options[name] = given[name]
    if images:
        options[IMAGES] = {"enabled": True}
    if "expireAfterSeconds" in given:
        options["expireAfterSeconds"] = read_expiry(
            given["expireAfterSeconds"], now_seconds=int(call.services.clock.wall_seconds())
        )
    for name in ("storageEngine", "indexOptionDefaults", "encryptedFields"):
        if given.get(name):
            options[name] = given[name]
    return options


def _kind_options(call: Call, given: Document) -> Document:
    """Return the options that make a collection a view, a time series, clustered or capped: it is one of them."""
    is_capped = call.flag("capped")
    if "viewOn" in given:
        return _view_options(call, given)
    if "pipeline" in given:
        raise MongoFailure(72, "'pipeline' requires 'viewOn' to also be specified")
    size = read_size("create.size", given["size"]) if "size" in given else None
    most = read_max("create.max", given["max"]) if "max" in given else 0
    if "timeseries" in given:
        for name in ("capped", "validator", "validationLevel", "validationAction", "idIndex", "clusteredIndex", IMAGES):
            if name in given and (name != "capped" or is_capped):
                raise MongoFailure(72, f"'{name}' is not supported on a time series collection")
        return {"timeseries": read_time_series(given["timeseries"])}
    if "clusteredIndex" in given:
        clustered = read_clustered(given["clusteredIndex"])
        if is_capped:
            raise MongoFailure(6049200, "A capped collection cannot be clustered")
        if clustered is not None:
            if "max" in given:
                raise MongoFailure(6049204, "A clustered collection cannot have 'max'")
            if "idIndex" in given:
                raise MongoFailure(72, "The 'clusteredIndex' option is not supported with the 'idIndex' option")
            return {"clusteredIndex": clustered}
    if "expireAfterSeconds" in given:
        raise MongoFailure(72, "'expireAfterSeconds' is only for time series and clustered collections")
    if not is_capped:
        if size is not None or "max" in given:
            raise MongoFailure(
                72, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present"
            )
        return {}
    if size is None:
        raise MongoFailure(72, "the 'size' field is required when 'capped' is true")
    return {"capped": True, "size": shown_number(size), **({"max": most} if most else {})}


def _view_options(call: Call, given: Document) -> Document:
    if "clusteredIndex" in given:
        raise MongoFailure(6026500, "A view cannot be clustered")
    for name in ("timeseries", "idIndex", "expireAfterSeconds", IMAGES):
        if name in given and (name != IMAGES or given[IMAGES]["enabled"]):
            raise MongoFailure(72, f"'{name}' is not supported on a view")
    if call.flag("capped") and "size" not in given:
        raise MongoFailure(72, "the 'size' field is required when 'capped' is true")
    pipeline = [stage for stage in given.get("pipeline", ()) if stage is not None]
    check_view(call, call.target, given["viewOn"], pipeline)
    return {"viewOn": given["viewOn"], "pipeline": pipeline}


COMMANDS = (
    Command("create", with_write_concern(create), "Create a collection or a view.", fields=_FIELDS,
            target=Target.COLLECTION, access=Access.DATABASE_ADMIN, in_transaction=True, api_version_1=True,
            writes=True),
)  # fmt: skip
