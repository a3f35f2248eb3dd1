"""The parts of the program that queues and topics need, and tasks that work for them in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from asterism.clock import Clock
from asterism.errors import AsterismError
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.messages.descriptions import Description, QueueDescription, TopicDescription
from asterism.models.messages.due import DueTimer
from asterism.models.messages.rules import CompileRules

if TYPE_CHECKING:
    from asterism.models.messages.forwarding import Forwarder

_log = logging.getLogger(__name__)

# The property of an entity's settings that has its description (models/namespaces/store.py).
_DESCRIPTION: Final = "messagingDescription"


class MessageServices:
    """Shared by all entities of a process."""

    # Set by the store, which the forwarding needs.
    forwarding: Forwarder

    def __init__(
        self,
        router: PartitionRouter,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        compile_rules: CompileRules,
    ) -> None:
        self.router = router
        self.clock = clock
        self.random_bytes = random_bytes
        self.compile_rules = compile_rules
        self.due = DueTimer(self)
        # Timers do nothing from now on.
        self.is_stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    def now_ms(self) -> int:
        return int(self.clock.wall_seconds() * 1000)

    def describe(self, kind: str, settings: Mapping[str, Any]) -> Description:
        """Return the description in the settings of an entity."""
        described = QueueDescription if kind == "queue" else TopicDescription
        return described.from_json(settings[_DESCRIPTION])

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work that ends by itself, or with the program."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        if isinstance(task.exception(), AsterismError):
            _log.warning("work on messages was given up: %s", task.exception())
        else:
            _log.error("work on messages has failed", exc_info=task.exception())

    async def stop(self) -> None:
        self.is_stopped = True
        self.due.stop()
        await end_tasks(list(self._tasks))
