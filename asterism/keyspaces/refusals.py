"""What a client is told when an engine did not do a call."""

from __future__ import annotations

from asterism.errors import AsterismError, StorageFull, StorageUnavailable
from asterism.storage.contract import EngineFailed, OutOfSpace

# The refusals that may reach a door. All others are answered on the way, by going to another partition for example,
# and one that was not is a defect.
REPORTED = (EngineFailed, OutOfSpace)


def as_error(refusal: EngineFailed | OutOfSpace) -> AsterismError:
    return StorageFull() if isinstance(refusal, OutOfSpace) else StorageUnavailable(reason=str(refusal))
