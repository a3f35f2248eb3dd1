"""What a node says of itself: to which fleet it belongs, by which number and name; kept on the node, beside the data.

A partition of its own holds it on every node, so that it is written once, atomically, whatever the engine is.
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
from asterism.values.json_text import dumps, loads_stored

IDENTITY_PARTITION = PartitionNumber(15)
_EPOCH = Epoch(1)
_IDENTITY = b"identity"


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    fleet: str
    number: NodeNumber
    name: str
    # The fleet began on it: it may be without a catalog only because that is still to be made.
    is_founder: bool = False


async def read_identity(engine: Engine) -> NodeIdentity | None:
    """None for a node that belongs to no fleet yet."""
    stored = await _read(engine, _IDENTITY)
    if stored is None:
        return None
    told = cast(dict[str, Any], loads_stored(stored))
    return NodeIdentity(told["fleet"], NodeNumber(told["number"]), told["name"], told["is_founder"])


async def claim(engine: Engine, identity: NodeIdentity) -> NodeIdentity:
    """Makes the node say who it is, unless it says so already; returns what it says, which may be another."""
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
    """Something else that is remembered with the node."""
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
            # Another process may have made it in this moment; otherwise this fails for the same reason.
            await engine.read_fence(IDENTITY_PARTITION)
