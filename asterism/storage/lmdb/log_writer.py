"""The thread that writes the log: a write to the disk would hold up the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from asterism.storage.lmdb.write_log import WriteLog

_Order = tuple[bytes, asyncio.AbstractEventLoop]


class LogWriter:
    """Append records in the order of `write`, and call back on the event loop that it was called on.

    `on_written` gets the reason for which a record could not be written, or None; `on_died` gets what has ended the
    thread.
    """

    def __init__(
        self,
        log: WriteLog,
        *,
        on_written: Callable[[OSError | None], None],
        on_died: Callable[[BaseException], None],
    ) -> None:
        self._log = log
        self._on_written = on_written
        self._on_died = on_died
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="asterism-log-writer", daemon=True)
        self._thread.start()

    def write(self, record: bytes) -> None:
        self._orders.put((record, asyncio.get_running_loop()))

    def stop(self) -> None:
        """Wait for the records that were given, and end."""
        self._orders.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            record, loop = order
            failure: OSError | None = None
            try:
                self._log.append(record)
            except OSError as error:
                failure = error
            except BaseException as error:
                _post(loop, self._on_died, error)
                return
            _post(loop, self._on_written, failure)


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[Any], None], argument: object) -> None:
    try:
        loop.call_soon_threadsafe(callback, argument)
    except RuntimeError:
        # The loop is closed, and no caller is waiting any more.
        return
