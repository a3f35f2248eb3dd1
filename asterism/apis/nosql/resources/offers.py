"""Offers: the throughput of databases and containers, read and changed."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, check_if_match, is_not_modified, json_object, read_only_words
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.items.queries import matching
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.resources.throughput import autoscale_to_json, throughput_in_content
from asterism.apis.transports.http import HeaderList, Response
from asterism.errors import MalformedRequest
from asterism.keyspaces.catalog.records import OfferRecord
from asterism.models.collections.store import ACCOUNT_PREFIX
from asterism.throughput.budgets import Autoscale, scaled_ru
from asterism.throughput.charge import METADATA, OFFER_CHANGE
from asterism.values.json.text import dumps
from asterism.values.resource_ids import (
    DATABASE_RID_BYTES,
    self_link_of_collection,
    self_link_of_database,
    self_link_of_offer,
    to_text,
)


def offer_json(context: Context, offer: OfferRecord) -> dict[str, object]:
    rid, resource_rid = to_text(offer.rid), offer.resource_rid
    is_database = len(resource_rid) == DATABASE_RID_BYTES
    link = self_link_of_database(resource_rid) if is_database else self_link_of_collection(resource_rid)
    return {
        "resource": link,
        "offerType": "Invalid",
        "offerResourceId": to_text(resource_rid),
        "offerVersion": "V2",
        "content": _content(context, offer),
        "id": rid,
        "_rid": rid,
        "_self": self_link_of_offer(offer.rid),
        "_etag": offer.etag,
        "_ts": offer.changed_at,
    }


def _content(context: Context, offer: OfferRecord) -> dict[str, object]:
    throughput = offer.throughput
    content: dict[str, object] = {
        # Idle autoscale rests at its floor.
        "offerThroughput": scaled_ru(throughput, observed_ru_per_second=0),
        "offerIsRUPerMinuteThroughputEnabled": False,
        "offerMinimumThroughputParameters": {"maxThroughputEverProvisioned": offer.highest_ever_ru},
    }
    if isinstance(throughput, Autoscale):
        content["offerAutopilotSettings"] = autoscale_to_json(throughput)
    if context.store.is_offer_pending(offer):
        content["isOfferReplacePending"] = True
    return content


def _headers(context: Context, offer: OfferRecord, *, charge: float) -> HeaderList:
    pending = context.store.is_offer_pending(offer)
    return [
        *metadata_headers(charge=charge, etag=offer.etag),
        (headers.MIN_THROUGHPUT, str(context.store.minimum_ru_for(offer))),
        (headers.OFFER_REPLACE_PENDING, "true" if pending else "false"),
    ]


def _offers_of_collections(context: Context) -> list[OfferRecord]:
    """Return the throughput of MongoDB's databases and collections, which can be read here."""
    return [] if context.collections is None else context.store.list_offers(ACCOUNT_PREFIX + context.account)


def _find(context: Context, name: str) -> OfferRecord:
    found = next((offer for offer in _offers_of_collections(context) if to_text(offer.rid) == name), None)
    return context.store.offer(context.account, name) if found is None else found


async def list_offers(call: Call) -> Response:
    context, request = call.context, call.request
    offers = context.store.list_offers(context.account) + _offers_of_collections(context)
    entries = [(to_text(offer.rid), offer_json(context, offer)) for offer in sorted(offers, key=_rid_text)]
    return list_page(
        request.headers,
        await matching(context, request, entries),
        rid="",
        name="Offers",
        more_headers=metadata_headers(charge=METADATA),
    )


async def post_offers(call: Call) -> Response:
    request = call.request
    if not is_true(request.headers.get(headers.IS_QUERY)):
        raise MalformedRequest(reason="An offer comes with its database or container and cannot be created alone.")
    return await list_offers(call)


async def read_offer(call: Call) -> Response:
    context, request = call.context, call.request
    offer = _find(context, call.offer_name)
    answer_headers = _headers(context, offer, charge=METADATA)
    if is_not_modified(request.headers, offer.etag):
        return Response(304, answer_headers)
    return Response(200, answer_headers, dumps(offer_json(context, offer)))


async def replace_offer(call: Call) -> Response:
    context, request = call.context, call.request
    offer = _find(context, call.offer_name)
    if offer in _offers_of_collections(context):
        raise Refusal(403, "Forbidden", read_only_words(context.mongo_address()))
    check_if_match(request.headers, offer.etag)
    body = json_object(request, context)
    if body.get("_rid", call.offer_name) != to_text(offer.rid):
        raise MalformedRequest(
            reason="The '_rid' of the offer in the request's body is not the one in its address. Send the offer as it "
            "was read, with its content changed."
        )
    throughput = throughput_in_content(body.get("content"))
    changed = await context.store.replace_offer(offer, throughput)
    return Response(200, _headers(context, changed, charge=OFFER_CHANGE), dumps(offer_json(context, changed)))


def _rid_text(offer: OfferRecord) -> str:
    return to_text(offer.rid)
