"""The limit of batches of a container that are worked on at once.

More would not be written sooner, because one batch fills a commit; they would only lie about, a few thousand objects
each, out of the processor's caches by the time their turn comes. With 32 clients that was a fifth of the throughput.
"""

from __future__ import annotations

from asterism.keyspaces.routing.keyed_semaphore import KeyedSemaphore

# One is being synced, one is being written, and one or two are being made.
BATCHES_AT_ONCE_MAX = 4


def new_batch_turns() -> KeyedSemaphore:
    """A queue for each container: a batch whose partition has to be split first must not hold up other containers."""
    return KeyedSemaphore(at_once=BATCHES_AT_ONCE_MAX)
