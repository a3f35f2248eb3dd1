"""A fragment of an entity in this process: its reader, its writer, and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from asterism.models.messages.draft import Draft
from asterism.models.messages.reading import FragmentReader
from asterism.models.messages.writer import FragmentWriter
from asterism.partitioning.partition_key import numbered_point

if TYPE_CHECKING:
    from asterism.models.messages.entity import Entity

# A fragment that did not answer is left alone for so long.
DOWN_SECONDS: Final = 5.0


class Fragment:
    __slots__ = ("_clock", "_down_until", "_entity", "number", "point", "reader", "writer")

    def __init__(self, entity: Entity, number: int) -> None:
        services = entity.services
        self._entity = entity
        self.number = number
        self.point = numbered_point(number)
        self.reader = FragmentReader(services.router, entity.keyspace, number, self.point)
        self.writer = FragmentWriter(
            entity.keyspace,
            services.router,
            services.clock,
            point=self.point,
            fragment=number,
            terms=lambda: entity.terms,
            applied=self._applied,
            doubtful=self._doubtful,
        )
        self._clock = services.clock
        self._down_until = float("-inf")

    @property
    def is_closed(self) -> bool:
        return self.number in self._entity.description.closed_fragments

    @property
    def is_down(self) -> bool:
        return self._clock.monotonic_seconds() < self._down_until

    @property
    def is_up(self) -> bool:
        return not self.is_down and not self.is_closed

    def mark_down(self) -> None:
        """Note that the fragment did not answer."""
        self._down_until = self._clock.monotonic_seconds() + DOWN_SECONDS
        self._entity.went_down(self)

    def _applied(self, draft: Draft) -> None:
        self._entity.applied(self, draft)

    def _doubtful(self) -> None:
        self._entity.forget(self)
