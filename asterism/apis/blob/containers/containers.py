"""Containers: created, described, changed, leased, deleted and restored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from typing import Final

from asterism.apis.blob.context import BlobCall, container_of, now_ticks
from asterism.apis.blob.errors import container_refusal_of
from asterism.apis.blob.leases import lease_answer, read_lease_action
from asterism.apis.blob.names import check_new_container_name
from asterism.apis.blob.policies import kept_policies, shown_policies
from asterism.apis.blob.record_headers import change_headers, lease_headers
from asterism.apis.blob.request_headers import read_conditions, read_flag
from asterism.apis.storage.access_policies import read_policies, write_policies
from asterism.apis.storage.metadata import metadata_headers, read_metadata
from asterism.apis.storage.refusals import invalid_header_value, missing_header, permission_mismatch
from asterism.apis.storage.xml_text import xml_response
from asterism.apis.transports.http import HeaderList, Headers, Response
from asterism.models.blobs.conditions import check_read
from asterism.models.blobs.failures import BlobRefused
from asterism.models.blobs.leases import apply_lease_action
from asterism.models.blobs.state import ContainerState

Handler = Callable[[BlobCall], Awaitable[Response]]

_PUBLIC_ACCESS: Final = "x-ms-blob-public-access"
_LEVELS: Final = ("container", "blob")
_DEFAULT_SCOPE: Final = "x-ms-default-encryption-scope"
_DENY_SCOPES: Final = "x-ms-deny-encryption-scope-override"


def about_container(handler: Handler) -> Handler:
    """Return the handler of an operation on a container itself, whose leases have refusals of their own."""

    @wraps(handler)
    async def handle(call: BlobCall) -> Response:
        try:
            return await handler(call)
        except BlobRefused as refused:
            raise container_refusal_of(refused.failure) from None

    return handle


async def create_container(call: BlobCall) -> Response:
    name, headers = call.resource.container, call.headers
    check_new_container_name(name)
    container = await call.context.store.create_container(
        call.account.name,
        name,
        metadata=read_metadata(headers),
        public_access=read_public_access(headers),
        default_encryption_scope=headers.get(_DEFAULT_SCOPE),
        denies_scope_override=read_flag(headers, _DENY_SCOPES),
        has_version_immutability=call.context.settings.is_immutable(call.account.name),
    )
    return Response(201, _state_headers(container.state))


def read_public_access(headers: Headers) -> str | None:
    text = headers.get(_PUBLIC_ACCESS)
    if not text:
        return None
    if text.lower() not in _LEVELS:
        raise invalid_header_value(_PUBLIC_ACCESS, text)
    return text.lower()


def _state_headers(state: ContainerState) -> HeaderList:
    return change_headers(state.etag, state.modified_at)


@about_container
async def get_properties(call: BlobCall) -> Response:
    state = container_of(call).state
    now = now_ticks(call)
    check_read(read_conditions(call.headers), state, now)
    answer = _state_headers(state) + lease_headers(state.lease, now) + metadata_headers(state.metadata)
    answer += [
        # Single blobs have them, containers do not.
        ("x-ms-has-immutability-policy", _flag(False)),
        ("x-ms-has-legal-hold", _flag(False)),
        ("x-ms-immutable-storage-with-versioning-enabled", _flag(state.has_version_immutability)),
        (_DEFAULT_SCOPE, state.default_encryption_scope or "$account-encryption-key"),
        (_DENY_SCOPES, _flag(state.denies_scope_override)),
    ]
    if state.public_access is not None:
        answer.append((_PUBLIC_ACCESS, state.public_access))
    return Response(200, answer)


def _flag(value: bool) -> str:
    return "true" if value else "false"


@about_container
async def get_metadata(call: BlobCall) -> Response:
    state = container_of(call).state
    check_read(read_conditions(call.headers), state, now_ticks(call))
    return Response(200, _state_headers(state) + metadata_headers(state.metadata))


@about_container
async def set_metadata(call: BlobCall) -> Response:
    metadata = read_metadata(call.headers)
    state = await call.context.store.change_container(
        container_of(call),
        lambda state, now: replace(state, metadata=metadata).touched(now),
        read_conditions(call.headers),
    )
    return Response(200, _state_headers(state))


@about_container
async def delete_container(call: BlobCall) -> Response:
    container = container_of(call)
    await call.context.store.delete_container(
        call.account.name,
        container.name,
        read_conditions(call.headers),
        await call.context.rule_book.rules_of(call.account.name),
    )
    return Response(202, [])


async def restore_container(call: BlobCall) -> Response:
    name, headers = call.resource.container, call.headers
    check_new_container_name(name)
    deleted_name = headers.get("x-ms-deleted-container-name")
    deleted_version = headers.get("x-ms-deleted-container-version")
    if not deleted_name or not deleted_version:
        raise missing_header("x-ms-deleted-container-version" if deleted_name else "x-ms-deleted-container-name")
    container = await call.context.store.restore_container(call.account.name, deleted_name, deleted_version, name)
    return Response(201, _state_headers(container.state))


# --- access policies and leases ---------------------------------------------------------------------------------------


def _check_owner(call: BlobCall) -> None:
    """Refuse a shared access signature: its holder may not read policies or make others."""
    if call.grant is not None:
        raise permission_mismatch()


@about_container
async def get_policies(call: BlobCall) -> Response:
    _check_owner(call)
    state = container_of(call).state
    check_read(read_conditions(call.headers), state, now_ticks(call))
    answer = _state_headers(state)
    if state.public_access is not None:
        answer.append((_PUBLIC_ACCESS, state.public_access))
    return xml_response(200, write_policies(shown_policies(state)), answer)


@about_container
async def set_policies(call: BlobCall) -> Response:
    _check_owner(call)
    policies = kept_policies(read_policies(call.request.body))
    access = read_public_access(call.headers)
    state = await call.context.store.change_container(
        container_of(call),
        lambda state, now: replace(state, policies=policies, public_access=access).touched(now),
        read_conditions(call.headers),
    )
    return Response(200, _state_headers(state))


@about_container
async def lease_container(call: BlobCall) -> Response:
    action = read_lease_action(call)
    # The id of the lease is the action's, not a condition.
    conditions = replace(read_conditions(call.headers), lease_id=None)
    state = await call.context.store.change_container(
        container_of(call),
        lambda state, now: replace(state, lease=apply_lease_action(state.lease, action, now)),
        conditions,
    )
    return lease_answer(action, state.lease, _state_headers(state), now_ticks(call))
