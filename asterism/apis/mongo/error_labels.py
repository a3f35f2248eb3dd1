"""The labels of errors: drivers look at them, not at codes, to decide what may be repeated."""

from __future__ import annotations

from typing import Final

RETRYABLE_WRITE: Final = "RetryableWriteError"
TRANSIENT: Final = "TransientTransactionError"
NO_WRITES: Final = "NoWritesPerformed"
# Make drivers back off and try again (section 0.3 of the contract).
OVERLOADED: Final = ("SystemOverloadedError", "RetryableError")

# After these, drivers wait for news of the set, unless the error says that there are none.
STATE_CHANGES: Final = frozenset({91, 189, 10107, 11600, 11602, 13435, 13436})
# The server or its storage is away, or another one takes over.
_RETRIABLE: Final = frozenset({6, 7, 89, 91, 134, 189, 262, 317, 358, 384, 9001, 10107, 11600, 11602, 13435, 13436})
# LockTimeout, WriteConflict, SnapshotTooOld, SnapshotUnavailable, NoSuchTransaction, PreparedTransactionInProgress:
# the same transaction may succeed when all of it is repeated.
_TRANSIENT: Final = frozenset({24, 112, 239, 246, 267})
_NO_SUCH_TRANSACTION: Final = 251


def labels_of(
    code: int | None,
    *,
    concern_code: int | None = None,
    is_retryable_write: bool = False,
    is_in_transaction: bool = False,
    ends_transaction: bool = False,
    has_written: bool = True,
) -> list[str]:
    """Return the labels of a failed command, or of a write concern that was not met (`concern_code`).

    `ends_transaction` is of commitTransaction and abortTransaction, which drivers repeat as they repeat writes.
    """
    labels: list[str] = []
    if is_in_transaction and code is not None and _is_transient(code, concern_code, ends_transaction=ends_transaction):
        labels.append(TRANSIENT)
    if (is_retryable_write or ends_transaction) and (code in _RETRIABLE or concern_code in _RETRIABLE):
        labels.append(RETRYABLE_WRITE)
        if is_retryable_write and code is not None and not has_written:
            labels.append(NO_WRITES)
    return labels


def _is_transient(code: int, concern_code: int | None, *, ends_transaction: bool) -> bool:
    if code in _TRANSIENT:
        return True
    if ends_transaction:
        return code == _NO_SUCH_TRANSACTION and concern_code is None
    return code == _NO_SUCH_TRANSACTION or code in _RETRIABLE
