"""The processes that serve one address together, as a door sees them.

With `--workers` the system hands every connection to any of the processes, so that what one of them keeps for a client
(an open cursor, a transaction) may be asked for at another. A door asks the owner then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

# Answers a question of another process. The door that asks knows what the bytes mean.
Answering = Callable[[bytes], Awaitable[bytes]]


class ProcessUnreachable(Exception):
    """Another process of the group has ended, or has not answered in time."""

    def __init__(self, number: int) -> None:
        super().__init__(f"process {number} of the server does not answer")
        self.number = number


class ProcessGroup(Protocol):
    @property
    def number(self) -> int:
        """The place of this process, from 0. Another process takes the place of one that has ended."""

    @property
    def count(self) -> int: ...

    @property
    def start_token(self) -> bytes:
        """Bytes that all processes of one start of the server share: its second, four bytes, and twelve random ones."""

    def answer_with(self, topic: str, answer: Answering) -> None:
        """Let other processes ask this one about a topic."""

    async def ask(self, number: int, topic: str, question: bytes) -> bytes:
        """Return the answer of another process; ProcessUnreachable if it does not come."""


class SingleProcess:
    """The group of a server without workers."""

    number = 0
    count = 1

    def __init__(self, start_token: bytes) -> None:
        self.start_token = start_token

    def answer_with(self, topic: str, answer: Answering) -> None:
        """Forget it: there is no process that could ask."""

    async def ask(self, number: int, topic: str, question: bytes) -> bytes:  # noqa: ARG002
        raise ProcessUnreachable(number)
