"""Errors of clients for calls that an engine did not carry out."""

from __future__ import annotations

from asterism.errors import AsterismError, StorageFull, StorageUnavailable
from asterism.storage.contract import EngineFailed, OutOfSpace

# The refusals that may reach a door. All others are handled below it, by a retry at another partition for example; one
# that was not is a defect.
REPORTED = (EngineFailed, OutOfSpace)


def as_error(refusal: EngineFailed | OutOfSpace) -> AsterismError:
    return StorageFull() if isinstance(refusal, OutOfSpace) else StorageUnavailable(reason=str(refusal))
