"""Cross-origin requests: which of them the account's rules let a browser make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.apis.http import HeaderList, Headers, Response
from asterism.apis.table.errors import Refusal
from asterism.apis.table.service import PROPERTIES_DOCUMENT
from asterism.apis.table.service_properties import load_properties
from asterism.apis.table.store_contract import StoreLike

Rule = Mapping[str, Any]


async def answer_preflight(store: StoreLike, account: str, told: Headers) -> Response:
    """OPTIONS: a browser asks before it sends. The request is not signed; the rules alone decide."""
    origin, method = told.get("origin"), told.get("access-control-request-method")
    if not origin or not method:
        raise Refusal(
            400, "InvalidHeaderValue", "A preflight needs Origin and Access-Control-Request-Method.", is_xml=True
        )
    wanted = [one.strip() for one in (told.get("access-control-request-headers") or "").split(",") if one.strip()]
    for rule in await _rules(store, account):
        allows_headers = all(_allows_header(rule["AllowedHeaders"], one) for one in wanted)
        if allows_headers and _fits(rule, origin=origin, method=method):
            answer: HeaderList = [
                ("access-control-allow-origin", _told_origin(rule, origin)),
                ("access-control-allow-methods", ",".join(rule["AllowedMethods"])),
                ("access-control-max-age", str(rule["MaxAgeInSeconds"])),
                ("access-control-allow-credentials", "true"),
            ]
            if wanted:
                answer.append(("access-control-allow-headers", ",".join(wanted)))
            return Response(200, answer)
    raise Refusal(
        403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.", is_xml=True
    )


async def cors_headers(store: StoreLike, account: str, method: str, origin: str) -> HeaderList:
    """What the answer to a request from another origin says, so that the browser hands it on."""
    for rule in await _rules(store, account):
        if _fits(rule, origin=origin, method=method):
            return [
                ("access-control-allow-origin", _told_origin(rule, origin)),
                ("access-control-expose-headers", ",".join(rule["ExposedHeaders"])),
                ("access-control-allow-credentials", "true"),
                ("vary", "Origin"),
            ]
    return []


async def _rules(store: StoreLike, account: str) -> list[Rule]:
    rules: list[Rule] = load_properties(await store.get_document(account, None, PROPERTIES_DOCUMENT))["Cors"]
    return rules


def _fits(rule: Rule, *, origin: str, method: str) -> bool:
    return method.upper() in rule["AllowedMethods"] and (
        "*" in rule["AllowedOrigins"] or origin in rule["AllowedOrigins"]
    )


def _told_origin(rule: Rule, origin: str) -> str:
    return "*" if "*" in rule["AllowedOrigins"] else origin


def _allows_header(allowed: list[str], name: str) -> bool:
    lowered = name.lower()
    return any(lowered.startswith(one[:-1].lower()) if one.endswith("*") else lowered == one.lower() for one in allowed)
