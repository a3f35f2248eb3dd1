"""Throughput as operators see it: of a collection, of a database, and in the parameters of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.apis.admin.parameters import whole_number_of
from asterism.apis.admin.services import AdminServices
from asterism.keyspaces.catalog.records import OfferRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.throughput.budgets import Autoscale, Manual, Throughput, effective_ru

# Far above every limit, so that the limits themselves refuse what is too much, in their own words.
_RU_MAX = 10**12


def describe_offer(offer: OfferRecord | None) -> dict[str, Any]:
    """Describe the throughput that a database or a keyspace has for itself."""
    if offer is None:
        return {"mode": "none", "ru": None}
    mode = "autoscale" if isinstance(offer.throughput, Autoscale) else "manual"
    return {"mode": mode, "ru": effective_ru(offer.throughput)}


def describe_throughput(services: AdminServices, keyspace: Keyspace) -> dict[str, Any]:
    """Describe the throughput of a keyspace: its own, or all of the database's that it shares."""
    catalog, record = services.store.catalog, keyspace.record
    own = catalog.offer_for(record.rid)
    shared = catalog.offer_for(record.database_rid)
    if own is None and shared is not None:
        return {"mode": "shared", "ru": effective_ru(shared.throughput)}
    return describe_offer(own)


def throughput_asked(parameters: Mapping[str, str]) -> Throughput | None:
    """Read `throughput` and `autoscale`; None if there is no `throughput`."""
    if "throughput" not in parameters:
        return None
    ru = whole_number_of(parameters, "throughput", default=0, minimum=0, maximum=_RU_MAX)
    return Autoscale(ru) if parameters.get("autoscale") == "true" else Manual(ru)
