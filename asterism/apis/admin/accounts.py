"""Accounts of a running server: created, listed, changed, given new keys, deleted (spec C17).

Keys are shown only by requests that a read-only key cannot send.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any, Final

from asterism.access.account_settings import (
    COSMOS,
    DEFAULT_CONSISTENCY,
    KEY_BYTES,
    checked_account_kind,
    checked_account_name,
    checked_consistency,
    checked_key,
    key_text,
)
from asterism.access.keys import AccountKeys
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import AccountRefused, MalformedRequest, ResourceExists
from asterism.keyspaces.catalog.accounts import AccountQuotas, AccountRecord
from asterism.values.json.text import dumps

QUOTA_NAMES: Final = tuple(quota.name.removesuffix("_max").replace("_", "-") for quota in fields(AccountQuotas))
_QUOTA_MAX: Final = 2**53


async def show_accounts(services: AdminServices, _: Request) -> Response:
    records = [_describe(services, record) for record in services.accounts.all()]
    configured = [{"name": name, "configured": True} for name in sorted(services.configured_accounts)]
    return Response(200, JSON_HEADERS, dumps({"accounts": [*configured, *records]}))


async def create_account(services: AdminServices, request: Request) -> Response:
    """Create an account; keys that are not given are made."""
    body = body_object(request)
    name = checked_account_name(text_of(body, "name"))
    if name in services.configured_accounts:
        raise ResourceExists(kind="account", name=name)
    primary, secondary = (
        checked_key(text_of(body, key)) if key in body else _new_key(services)
        for key in ("primary_key", "secondary_key")
    )
    record = AccountRecord(
        name=name,
        kind=checked_account_kind(body.get("kind", COSMOS)),
        primary_key=primary,
        secondary_key=secondary,
        consistency=checked_consistency(body.get("consistency", DEFAULT_CONSISTENCY)),
        changed_at=services.store.services.clock.stored_seconds(),
        quotas=_quotas(body.get("quotas", {}), AccountQuotas()),
    )
    created = await services.accounts.create(record)
    return Response(201, JSON_HEADERS, dumps({"account": _describe(services, created), "keys": _keys(created)}))


async def change_account(services: AdminServices, request: Request) -> Response:
    """Change the consistency or quotas of an account; a quota of null is taken away."""
    body = body_object(request)

    def change(record: AccountRecord) -> AccountRecord:
        return replace(
            record,
            consistency=checked_consistency(body.get("consistency", record.consistency)),
            quotas=_quotas(body.get("quotas", {}), record.quotas),
            changed_at=services.store.services.clock.stored_seconds(),
        )

    changed = await services.accounts.update(_changeable(services, body), change)
    return Response(200, JSON_HEADERS, dumps({"account": _describe(services, changed)}))


async def show_account_keys(services: AdminServices, request: Request) -> Response:
    name = _changeable(services, body_object(request))
    return Response(200, JSON_HEADERS, dumps({"keys": _keys(services.required_account(name))}))


async def rotate_account_key(services: AdminServices, request: Request) -> Response:
    """Replace one of the two keys; the read-only key derived from it changes with it, the other pair stays valid."""
    body = body_object(request)
    field = {"primary": "primary_key", "secondary": "secondary_key"}.get(str(body.get("which")))
    if field is None:
        raise MalformedRequest(reason="'which' must be 'primary' or 'secondary'.")
    key = checked_key(text_of(body, "key")) if "key" in body else _new_key(services)
    now = services.store.services.clock.stored_seconds()
    changed = await services.accounts.update(
        _changeable(services, body),
        lambda record: replace(record, **{field: key}, changed_at=now),  # type: ignore[arg-type]  # str fields only
    )
    return Response(200, JSON_HEADERS, dumps({"keys": _keys(changed)}))


async def delete_account(services: AdminServices, request: Request) -> Response:
    """Delete an account, with its databases if the request says so. Repeat the request after a crash: it resumes."""
    body = body_object(request)
    name = _changeable(services, body)
    owned = services.databases_of(services.required_account(name))
    if owned and body.get("with_data") is not True:
        raise AccountRefused(
            reason=f"The account '{name}' has {len(owned)} databases. Delete them first, or delete the account with "
            "its data."
        )
    record = await services.accounts.close(name)
    for database in services.databases_of(record):
        await services.store.delete_database(database.account, database.name)
    await services.accounts.delete(name)
    return Response(200, JSON_HEADERS, dumps({"deleted": name}))


# --- the parts ------------------------------------------------------------------------------------------------------


def _changeable(services: AdminServices, body: dict[str, Any]) -> str:
    name = text_of(body, "name")
    if name in services.configured_accounts:
        raise AccountRefused(
            reason=f"The account '{name}' is given by the server's configuration. Change it there and restart."
        )
    return name


def _describe(services: AdminServices, record: AccountRecord) -> dict[str, Any]:
    databases = services.databases_of(record)
    return {
        "name": record.name,
        "kind": record.kind,
        "configured": False,
        "consistency": record.consistency,
        "quotas": {name: value for name, value in asdict(record.quotas).items() if value is not None},
        "databases": len(databases),
        "closing": record.is_closing,
    }


def _keys(record: AccountRecord) -> dict[str, str]:
    keys = AccountKeys.complete(primary=record.primary_key, secondary=record.secondary_key)
    return {
        "primary": keys.primary,
        "secondary": keys.secondary,
        "primary_readonly": keys.primary_readonly,
        "secondary_readonly": keys.secondary_readonly,
    }


def _quotas(given: object, before: AccountQuotas) -> AccountQuotas:
    if not isinstance(given, dict):
        raise MalformedRequest(reason="'quotas' must be an object.")
    changes: dict[str, int | None] = {}
    for name, value in given.items():
        stem = name.replace("-", "_").removesuffix("_max")
        if stem.replace("_", "-") not in QUOTA_NAMES:
            raise MalformedRequest(reason=f"'{name[:64]}' is not a quota. The quotas are {', '.join(QUOTA_NAMES)}.")
        if value is not None and (type(value) is not int or not 0 < value < _QUOTA_MAX):
            raise MalformedRequest(reason=f"The quota '{name[:64]}' must be a whole number above 0, or null for none.")
        changes[f"{stem}_max"] = value
    return replace(before, **changes)


def _new_key(services: AdminServices) -> str:
    return key_text(services.store.services.random_bytes(KEY_BYTES))
