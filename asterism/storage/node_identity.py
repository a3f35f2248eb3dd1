"""Identity of a node: its fleet, its number and its name; stored on the node, beside the data.

It has a partition of its own on every node, so that it is written once, atomically, on every engine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

from asterism.storage.contract import (
    Batch,
    Engine,
    EngineFailed,
    Expectation,
    ExpectationFailed,
    Fence,
    PartitionUnknown,
)
from asterism.values.identifiers import Epoch, NodeNumber, PartitionNumber
from asterism.values.json.text import dumps, loads_stored

IDENTITY_PARTITION = PartitionNumber(15)
_EPOCH = Epoch(1)
_IDENTITY = b"identity"


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    fleet: str
    number: NodeNumber
    name: str
    # The fleet started on this node: it may lack a catalog only because that is not created yet.
    is_founder: bool = False


async def read_identity(engine: Engine) -> NodeIdentity | None:
    """Return the identity, or None for a node that does not belong to a fleet yet."""
    stored = await _read(engine, _IDENTITY)
    if stored is None:
        return None
    record = cast(dict[str, Any], loads_stored(stored))
    return NodeIdentity(record["fleet"], NodeNumber(record["number"]), record["name"], record["is_founder"])


async def claim(engine: Engine, identity: NodeIdentity) -> NodeIdentity:
    """Write the identity of a node, unless it has one already; return the stored identity, which may differ."""
    await _ensure_partition(engine)
    batch = Batch(
        expectations=[Expectation(_IDENTITY, None)],
        puts=[(_IDENTITY, dumps(asdict(identity)))],
        may_use_reserve=True,
    )
    try:
        await engine.apply(IDENTITY_PARTITION, _EPOCH, batch)
    except ExpectationFailed:
        return await read_identity(engine) or identity
    return identity


async def read_note(engine: Engine, name: str) -> str | None:
    """Return a note that is stored with the node, or None."""
    stored = await _read(engine, name.encode())
    return None if stored is None else stored.decode()


async def write_note(engine: Engine, name: str, text: str | None) -> None:
    await _ensure_partition(engine)
    key = name.encode()
    batch = Batch(deletes=[key]) if text is None else Batch(puts=[(key, text.encode())], may_use_reserve=True)
    await engine.apply(IDENTITY_PARTITION, _EPOCH, batch)


async def _read(engine: Engine, key: bytes) -> bytes | None:
    try:
        _, (stored,) = await engine.read(IDENTITY_PARTITION, _EPOCH, [key])
    except PartitionUnknown:
        return None
    return stored


async def _ensure_partition(engine: Engine) -> None:
    try:
        await engine.read_fence(IDENTITY_PARTITION)
    except PartitionUnknown:
        try:
            await engine.create_partition(IDENTITY_PARTITION, Fence(_EPOCH))
        except EngineFailed:
            # Another process may have just created it; otherwise this fails for the same reason.
            await engine.read_fence(IDENTITY_PARTITION)
