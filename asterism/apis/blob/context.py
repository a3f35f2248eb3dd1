"""The surroundings of handlers of the blob door: the services of the door, and what a request names of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from asterism.apis.blob.encryption import check_not_both, choose_scope, key_digest, read_customer_key
from asterism.apis.blob.errors import container_not_found
from asterism.apis.blob.etags import read_moment
from asterism.apis.blob.names import check_blob_name, check_container_name, check_name_was_utf8
from asterism.apis.storage.auth import OWNER
from asterism.apis.storage.call import Call
from asterism.apis.storage.refusals import Refusal, invalid_query_parameter, permission_mismatch
from asterism.models.blobs.calls import CURRENT, NO_KEY, Key, Snapshot, Version, Which
from asterism.models.blobs.container import Container
from asterism.models.blobs.store import BlobStore
from asterism.values.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from asterism.apis.blob.account_rules import AccountRuleBook
    from asterism.apis.blob.spec import BlobSettings
    from asterism.clock import Clock


@dataclass(frozen=True, slots=True)
class BlobContext:
    store: BlobStore
    settings: BlobSettings
    rule_book: AccountRuleBook
    clock: Clock
    # Names leases whose requests propose no id.
    new_id: Callable[[], str]


BlobCall = Call[BlobContext]
# Of signatures for a single blob, snapshot or version.
_NAMED_BLOBS: Final = frozenset({"b", "bs", "bv"})


def now_ticks(call: BlobCall) -> int:
    return int(call.now * TICKS_PER_SECOND)


def container_of(call: BlobCall) -> Container:
    """Return the container of the request's URL."""
    name = call.resource.container
    found = call.context.store.find_container(call.account.name, name)
    if found is None:
        check_container_name(name)
        raise container_not_found()
    return found


def blob_container_of(call: BlobCall) -> Container:
    """Return the container of the blob of the request's URL, whose name is one that a blob can have."""
    container = container_of(call)
    name = call.resource.name
    check_blob_name(name, container=container.name)
    if not _is_name_signed(call):
        check_name_was_utf8(name)
    return container


def _is_name_signed(call: BlobCall) -> bool:
    """Return True if the credentials of the request are valid for its very name. A signature with a key of the account
    covers the path as it was on the wire."""
    grant = call.grant
    return call.sender == OWNER if grant is None else grant.resource in _NAMED_BLOBS


def check_granted(call: BlobCall, permission: str) -> None:
    """Refuse a part of a request that needs a permission of its own, if the sender's signature does not have it."""
    if call.grant is not None and not call.grant.has(permission):
        raise permission_mismatch()


def which_of(call: BlobCall) -> Which:
    """Return whether a request is about the blob itself, a snapshot, or a version."""
    snapshot, version = call.query.get("snapshot"), call.query.get("versionid")
    if not snapshot and not version:
        return CURRENT
    if snapshot and version:
        raise invalid_query_parameter("versionid", version, "A request names a snapshot or a version, not both.")
    name, text = ("snapshot", snapshot) if snapshot else ("versionid", version or "")
    ticks = read_moment(text or "")
    if ticks is None:
        raise invalid_query_parameter(name, text or "", "The value is not the time of a snapshot or a version.")
    return Snapshot(ticks) if snapshot else Version(ticks)


def key_for_read(call: BlobCall) -> Key:
    key = read_customer_key(call.headers)
    return NO_KEY if key is None else Key(key_digest(key))


def key_for_write(call: BlobCall, container: Container) -> Key:
    """Return the key with which data of a request are written: that of the request, or a scope."""
    key = read_customer_key(call.headers)
    check_not_both(call.headers, key)
    if key is not None:
        return Key(key_digest(key))
    state = container.state
    scope = choose_scope(
        call.headers,
        granted_scope=call.grant.encryption_scope if call.grant is not None else None,
        default_scope=state.default_encryption_scope,
        denies_override=state.denies_scope_override,
    )
    return NO_KEY if scope is None else Key(scope=scope)


def unauthorized_overwrite() -> Refusal:
    return Refusal(403, "UnauthorizedBlobOverwrite", "This request is not authorized to perform blob overwrites.")
