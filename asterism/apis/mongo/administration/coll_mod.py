"""The command `collMod`: changes of a collection's options and of one of its indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.mongo.administration.coll_mod_index import change_index
from asterism.apis.mongo.administration.options.expiry import read_expiry
from asterism.apis.mongo.administration.options.images import IMAGES, read_images
from asterism.apis.mongo.administration.options.sizes import read_max, read_size, shown_number
from asterism.apis.mongo.administration.options.time_series import change_time_series
from asterism.apis.mongo.administration.options.validators import check_choices, check_validator
from asterism.apis.mongo.administration.options.view_pipelines import check_view
from asterism.apis.mongo.arguments import ARRAY, BOOL, NUMBER, OBJECT, TEXT, TRUTH
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule, Target
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.apis.mongo.data.targets import check_uuid
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.types import Document

_FIELDS: Final = {
    "index": FieldRule(OBJECT),
    "validator": FieldRule(OBJECT),
    "validationLevel": FieldRule(TEXT),
    "validationAction": FieldRule(TEXT),
    "viewOn": FieldRule(TEXT),
    "pipeline": FieldRule(ARRAY),
    IMAGES: FieldRule(OBJECT),
    "expireAfterSeconds": FieldRule(("string", *NUMBER), null_code=14),
    "timeseries": FieldRule(OBJECT),
    "cappedSize": FieldRule(NUMBER),
    "cappedMax": FieldRule(NUMBER),
    "dryRun": FieldRule(TRUTH),
    "collectionUUID": FieldRule(("binData",)),
    "recordPreImages": FieldRule(BOOL),
    "isTimeseriesNamespace": FieldRule(BOOL),
}
_VALIDATION: Final = ("validator", "validationLevel", "validationAction")
_VIEW: Final = ("viewOn", "pipeline")
# Fields by the kind of collection that has them; all others are refused.
_OF_KIND: Final[Mapping[str, frozenset[str]]] = {
    "collection": frozenset({"index", *_VALIDATION, IMAGES, "expireAfterSeconds", "cappedSize", "cappedMax"}),
    "timeseries": frozenset({"index", "timeseries", "expireAfterSeconds"}),
    "view": frozenset(_VIEW),
}


async def coll_mod(call: Call) -> Document:
    record = call.record()
    given = {name: call.body[name] for name in _FIELDS if call.body.get(name) is not None}
    check_uuid(given.get("collectionUUID"), record, call.database, call.target)
    check_choices(given)
    if IMAGES in given:
        read_images("collMod", given[IMAGES])
    sizes = _read_sizes(given)
    if call.flag("dryRun"):
        _check_dry_run(given)
    if record is None:
        raise MongoFailure(26, f"ns does not exist: {call.namespace}")
    _check_kind(record, given)
    options = dict(record.options) | sizes
    _change_validation(call, given, options)
    if record.is_view and not given.keys().isdisjoint(_VIEW):
        _change_view(call, given, options)
    _change_rest(call, record, given, options)
    answer: Document = {}
    if "index" in given:
        answer = await change_index(call, record, given["index"], dry_run=call.flag("dryRun"))
    if options != record.options:
        # With smaller bounds the next insert makes room, as MongoDB's does.
        await call.store.change_options(call.account, record, options)
    elif "index" not in given and not call.flag("dryRun"):
        # Change streams show a change without effect, too.
        await call.store.change_options(call.account, record, options)
    return answer


def _read_sizes(given: Document) -> Document:
    sizes: Document = {}
    if "cappedSize" in given:
        sizes["size"] = shown_number(read_size("collMod.cappedSize", given["cappedSize"]))
    if "cappedMax" in given:
        sizes["max"] = read_max("collMod.cappedMax", given["cappedMax"])
    return sizes


def _check_dry_run(given: Document) -> None:
    index = given.get("index")
    others = given.keys() - {"index", "dryRun", "collectionUUID"}
    if (
        not isinstance(index, dict)
        or not index.get("unique")
        or others
        or set(index) - {"name", "keyPattern", "unique"}
    ):
        raise MongoFailure(72, "'dryRun' is only for the conversion of an index into a unique one")


def _check_kind(record: CollectionRecord, given: Document) -> None:
    kind = "view" if record.is_view else "timeseries" if "timeseries" in record.options else "collection"
    for name in given:
        if name in ("dryRun", "collectionUUID", "isTimeseriesNamespace", "recordPreImages"):
            continue
        if name not in _OF_KIND[kind]:
            raise MongoFailure(72, f"'{name}' is not supported on a {kind}")
    if ("cappedSize" in given or "cappedMax" in given) and not record.options.get("capped"):
        raise MongoFailure(72, "Collection must be capped: only a capped collection has 'cappedSize' and 'cappedMax'")
    if "expireAfterSeconds" in given and kind == "collection" and "clusteredIndex" not in record.options:
        raise MongoFailure(72, "'expireAfterSeconds' is only for time series and clustered collections")


def _change_validation(call: Call, given: Document, options: dict[str, Any]) -> None:
    if "validator" in given:
        check_validator(call, call.target, given["validator"])
        options["validator"] = given["validator"]
        if not given["validator"]:
            del options["validator"]
    for name in ("validationLevel", "validationAction"):
        if name in given:
            options[name] = given[name]


def _change_view(call: Call, given: Document, options: dict[str, Any]) -> None:
    view_on = given.get("viewOn", options["viewOn"])
    # A view on another collection without a pipeline is that collection as it is.
    pipeline = given.get("pipeline", [] if "viewOn" in given else options.get("pipeline", []))
    pipeline = [stage for stage in pipeline if stage is not None]
    check_view(call, call.target, view_on, pipeline)
    options["viewOn"], options["pipeline"] = view_on, pipeline


def _change_rest(call: Call, record: CollectionRecord, given: Document, options: dict[str, Any]) -> None:
    if IMAGES in given:
        options[IMAGES] = {"enabled": given[IMAGES]["enabled"]}
        if not given[IMAGES]["enabled"]:
            del options[IMAGES]
    if "timeseries" in given:
        options["timeseries"] = change_time_series(record.options["timeseries"], given["timeseries"])
    expiry = given.get("expireAfterSeconds")
    if isinstance(expiry, str):
        if expiry != "off":
            raise MongoFailure(72, "'expireAfterSeconds' must be a number or 'off'")
        options.pop("expireAfterSeconds", None)
    elif expiry is not None:
        now_seconds = int(call.services.clock.wall_seconds())
        options["expireAfterSeconds"] = read_expiry(expiry, now_seconds=now_seconds)
    if options.get("max") == 0:
        del options["max"]


COMMANDS = (
    Command("collMod", with_write_concern(coll_mod), "Change a collection.", target=Target.COLLECTION, fields=_FIELDS,
            access=Access.DATABASE_ADMIN, api_version_1=True, writes=True),
)  # fmt: skip
