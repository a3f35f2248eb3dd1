"""A batch of one fragment in the making: primitive changes of messages, and the sums of their sizes and counters.

Pure: nothing is read or written here. The operations of a batch add to one draft after another; what they have read
before is theirs to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from asterism.models.messages.layout import (
    ACTIVATION,
    ASIDE,
    BODIES,
    COUNTERS,
    EXPIRY,
    LOCKS,
    MESSAGES,
    NEVER,
    READY,
    REFERENCES,
    RETURNED,
    SESSION_MESSAGES,
    STATES,
    TAIL,
    due_key,
    pack_number,
    session_part,
    session_value,
)
from asterism.models.messages.messages import DeadLetter, MessageState
from asterism.models.messages.records import (
    DEFAULT_STATE,
    BodyPlace,
    Facts,
    MessageRecord,
    StateRecord,
    merge_overlay,
    pack_overlay,
    pack_record,
    pack_references,
    pack_state,
    unpack_record,
    unpack_references,
)
from asterism.models.messages.terms import ChannelTerms, EntityTerms
from asterism.storage.contract import Add, Batch, Expectation
from asterism.throughput import charge

# Up to so many bytes of copies, all subscriptions together, a content is copied into each; reading and counting
# references would cost more.
COPIED_BYTES_MAX: Final = 4096
# The place of a state's counter in the counters of a channel, and that of the bytes.
_BYTES: Final = 3
# Every value begins so: the key is present.
PRESENT: Final = b""


class NextBatch(Exception):
    """An operation concerns a message that another operation of the batch has changed: it belongs to the next one,
    which reads the message again."""


class Returned:
    """A message that became available without being new: it may lie behind cursors."""

    __slots__ = ("channel", "number", "session_id")

    def __init__(self, channel: bytes, number: int, session_id: str | None) -> None:
        self.channel = channel
        self.number = number
        # None if the channel has no sessions.
        self.session_id = session_id


class Draft:
    """The changes of one batch. Numbers are those of the fragment; times are milliseconds."""

    __slots__ = (
        "_counters",
        "_first_number",
        "_references",
        "_tail_before",
        "_touched",
        "batch",
        "bytes_delta",
        "cost",
        "due_ms",
        "forgotten_digests",
        "fragment",
        "fresh",
        "is_shared",
        "items_delta",
        "next_number",
        "now_ms",
        "point",
        "returned",
        "seen_digests",
        "terms",
    )

    def __init__(
        self, terms: EntityTerms, *, point: bytes, fragment: int, tail: bytes | None, now_ms: int, is_shared: bool
    ) -> None:
        self.terms = terms
        self.point = point
        self.fragment = fragment
        self.now_ms = now_ms
        # Other processes serve the entity: what excludes them must be expected.
        self.is_shared = is_shared
        self.batch = Batch()
        self.bytes_delta = 0
        self.items_delta = 0
        self.cost = 0.0
        self._tail_before = tail
        self.next_number = self._first_number = 1 if tail is None else int.from_bytes(tail, "big")
        self._counters: dict[bytes, list[int]] = {}
        # Number of a body -> stored value, references and length after the batch.
        self._references: dict[int, tuple[bytes | None, int, int]] = {}
        self._touched: set[tuple[bytes, int]] = set()
        # Digests of message ids that the batch remembers, with their numbers, and those that it forgets.
        self.seen_digests: dict[bytes, int] = {}
        self.forgotten_digests: set[bytes] = set()
        # To be announced when the batch is durable: new messages by channel, with their sessions; messages that are
        # available again; and the earliest moment at which there is something due.
        self.fresh: dict[bytes, list[str | None]] = {}
        self.returned: list[Returned] = []
        self.due_ms = NEVER

    # --- numbers ----------------------------------------------------------------------------------------------------

    def take_number(self) -> int:
        number = self.next_number
        self.next_number = number + 1
        return number

    def touch(self, channel: bytes, number: int) -> None:
        """Note that an operation changes a stored message; NextBatch if another operation of the batch does."""
        place = channel, number
        if place in self._touched:
            raise NextBatch
        self._touched.add(place)

    def touch_all(self, channel: bytes, numbers: Sequence[int]) -> None:
        """Note it of several messages; NextBatch, and nothing noted, if another operation changes one of them."""
        places = [(channel, number) for number in numbers]
        if self._touched and not self._touched.isdisjoint(places):
            raise NextBatch
        self._touched.update(places)

    # --- messages ---------------------------------------------------------------------------------------------------

    def put(
        self,
        terms: ChannelTerms,
        number: int,
        value: bytes,
        *,
        expires_ms: int,
        session_id: str | None,
        state: StateRecord = DEFAULT_STATE,
        is_fresh: bool = True,
    ) -> None:
        """Add a message to a channel. Only a fresh number is above all that the channel has had."""
        channel = terms.channel
        place = self.point + channel + pack_number(number)
        puts = self.batch.puts
        puts.append((MESSAGES + place, value))
        kind = MessageState.ACTIVE
        if state is not DEFAULT_STATE:
            kind = state.state
            puts.append((STATES + place, pack_state(state)))
        session = session_id if terms.requires_session else None
        if session is not None:
            puts.append(self._session_entry(channel, session, number, READY if not kind else ASIDE))
        # A scheduled message becomes active first.
        if expires_ms != NEVER and kind is not MessageState.SCHEDULED:
            self._put_due(expires_ms, EXPIRY, channel, number)
        self._count(channel, kind, 1, len(value))
        self.cost += charge.write(len(value), 0)
        if kind is MessageState.ACTIVE:
            if is_fresh:
                self.fresh.setdefault(channel, []).append(session)
            else:
                self.give_back(terms, number, session_id)

    def remove(self, terms: ChannelTerms, facts: Facts, *, keeps_body: bool = False) -> None:
        """Remove a message with everything that is stored about it, its lock included."""
        channel = facts.channel
        place = self.point + channel + pack_number(facts.number)
        deletes = self.batch.deletes
        deletes.append(MESSAGES + place)
        state = facts.state
        if state is not DEFAULT_STATE:
            deletes.append(STATES + place)
        if terms.requires_session and facts.session_id is not None:
            group = READY if not state.state else ASIDE
            deletes.append(self._session_entry(channel, facts.session_id, facts.number, group)[0])
        if facts.expires_ms != NEVER and state.state is not MessageState.SCHEDULED:
            deletes.append(due_key(self.point, facts.expires_ms, EXPIRY, channel, facts.number))
        if self.is_shared:
            deletes.append(LOCKS + place)
            deletes.append(RETURNED + place)
        if facts.body is not None and not keeps_body:
            self.drop_reference(facts.body)
        self._count(channel, state.state, -1, -facts.size)
        self.cost += charge.delete(facts.size, 0)

    def remove_all(self, terms: ChannelTerms, messages: Sequence[Facts]) -> None:
        """Remove messages of a channel. Those about which nothing else is stored, as most are, go together."""
        plain: list[Facts] = []
        if not (self.is_shared or terms.requires_session):
            plain = [each for each in messages if each.state is DEFAULT_STATE and each.expires_ms == NEVER]
            plain = [each for each in plain if each.body is None]
        if len(plain) < len(messages):
            together = {id(facts) for facts in plain}
            for facts in messages:
                if id(facts) not in together:
                    self.remove(terms, facts)
        if not plain:
            return
        prefix = MESSAGES + self.point + terms.channel
        self.batch.deletes += [prefix + pack_number(facts.number) for facts in plain]
        sizes = [facts.size for facts in plain]
        self._count(terms.channel, MessageState.ACTIVE, -len(plain), -sum(sizes))
        self.cost += sum([charge.delete(size, 0) for size in sizes])

    def change_state(self, terms: ChannelTerms, facts: Facts, state: StateRecord) -> None:
        """Give a message another state; its lock is not touched."""
        key = STATES + self.point + facts.channel + pack_number(facts.number)
        if state == DEFAULT_STATE:
            self.batch.deletes.append(key)
        else:
            self.batch.puts.append((key, pack_state(state)))
        before, after = facts.state.state, state.state
        if before is not after:
            self._count(facts.channel, before, -1, 0, items=0)
            self._count(facts.channel, after, 1, 0, items=0)
            session_id = facts.session_id
            if terms.requires_session and session_id is not None and bool(before) != bool(after):
                old, new = (READY, ASIDE) if after else (ASIDE, READY)
                self.batch.deletes.append(self._session_entry(facts.channel, session_id, facts.number, old)[0])
                self.batch.puts.append(self._session_entry(facts.channel, session_id, facts.number, new))
        self.cost += charge.write(len(state.overlay), 0)

    def become_active(self, terms: ChannelTerms, facts: Facts, value: bytes, state: StateRecord) -> None:
        """Make a scheduled message active, whose moments in `value` are those that hold from now on."""
        key = MESSAGES + self.point + facts.channel + pack_number(facts.number)
        self.batch.puts.append((key, value))
        self.change_state(terms, facts, state)
        if facts.expires_ms != NEVER:
            self._put_due(facts.expires_ms, EXPIRY, facts.channel, facts.number)
        self.give_back(terms, facts.number, facts.session_id)

    def give_back(self, terms: ChannelTerms, number: int, session_id: str | None) -> None:
        """Announce that an active message is available again."""
        session = session_id if terms.requires_session else None
        self.returned.append(Returned(terms.channel, number, session))
        if self.is_shared and session is None:
            self.batch.puts.append((RETURNED + self.point + terms.channel + pack_number(number), b""))

    def unlock(self, facts: Facts) -> None:
        """Remove the stored lock of a message."""
        if self.is_shared:
            self.batch.deletes.append(LOCKS + self.point + facts.channel + pack_number(facts.number))

    # --- dead letters and expiry ------------------------------------------------------------------------------------

    def dead_letter(
        self,
        terms: ChannelTerms,
        facts: Facts,
        value: bytes,
        letter: DeadLetter,
        *,
        delivery_count: int,
        to: bytes | None = None,
    ) -> None:
        """Move a message to the dead letters, or to the channel `to`. It keeps its number."""
        channel = terms.dead_letters if to is None else to
        state = StateRecord(MessageState.ACTIVE, delivery_count, merge_overlay(facts.state.overlay, letter.overlay()))
        if channel == facts.channel:
            # Dead letters of dead letters stay where they are.
            self.change_state(terms, facts, state)
            self.give_back(terms, facts.number, facts.session_id)
            self.unlock(facts)
            return
        target = self.terms.channel(channel)
        assert target is not None, "the channels of an entity come together"
        record = unpack_record(value)
        self.remove(terms, facts, keeps_body=True)
        # Dead letters have no time to live.
        self.put(
            target,
            facts.number,
            pack_record(record._replace(expires_ms=NEVER)),
            expires_ms=NEVER,
            session_id=record.session_id,
            state=DEFAULT_STATE if state == DEFAULT_STATE else state,
            is_fresh=False,
        )

    def put_dead_letter(self, terms: ChannelTerms, number: int, record: MessageRecord, letter: DeadLetter) -> None:
        """Add a message to the dead letters that was never in the channel itself."""
        target = self.terms.channel(terms.dead_letters)
        assert target is not None, "the channels of an entity come together"
        value = pack_record(record._replace(expires_ms=NEVER))
        state = StateRecord(MessageState.ACTIVE, 0, pack_overlay(letter.overlay()))
        self.put(target, number, value, expires_ms=NEVER, session_id=None, state=state, is_fresh=False)

    # --- bodies that are shared -------------------------------------------------------------------------------------

    def put_body(self, number: int, content: bytes, references: int) -> BodyPlace:
        place = self.point + pack_number(number)
        self.batch.puts.append((BODIES + place, content))
        self.batch.puts.append((REFERENCES + place, pack_references(references, len(content))))
        self.bytes_delta += len(content)
        return BodyPlace(number, len(content))

    def know_references(self, body: BodyPlace, stored: bytes | None) -> None:
        """Note the references to a body as they were read, before `drop_reference` is called."""
        if body.number not in self._references:
            count, length = (0, 0) if stored is None else unpack_references(stored)
            self._references[body.number] = stored, count, length

    def drop_reference(self, body: BodyPlace) -> None:
        stored, count, length = self._references[body.number]
        self._references[body.number] = stored, count - 1, length

    def references_key(self, body: BodyPlace) -> bytes:
        return REFERENCES + self.point + pack_number(body.number)

    def _finish_bodies(self) -> None:
        for number, (stored, count, length) in self._references.items():
            if stored is None or unpack_references(stored)[0] == count:
                continue
            place = self.point + pack_number(number)
            self.batch.expectations.append(Expectation(REFERENCES + place, stored))
            if count > 0:
                self.batch.puts.append((REFERENCES + place, pack_references(count, length)))
                continue
            self.batch.deletes.append(REFERENCES + place)
            self.batch.deletes.append(BODIES + place)
            self.bytes_delta -= length

    # --- due moments ------------------------------------------------------------------------------------------------

    def put_activation(self, moment_ms: int, channel: bytes, number: int) -> None:
        self._put_due(moment_ms, ACTIVATION, channel, number)

    def delete_activation(self, moment_ms: int, channel: bytes, number: int) -> None:
        self.batch.deletes.append(due_key(self.point, moment_ms, ACTIVATION, channel, number))

    def _put_due(self, moment_ms: int, kind: int, channel: bytes, number: int) -> None:
        self.batch.puts.append((due_key(self.point, moment_ms, kind, channel, number), b""))
        self.due_ms = min(self.due_ms, moment_ms)

    # --- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> bytes | None:
        """Complete the batch, and return the tail after it."""
        self._finish_bodies()
        batch, point = self.batch, self.point
        for channel, deltas in self._counters.items():
            if any(deltas):
                batch.adds.append(Add(COUNTERS + point + channel, tuple(deltas)))
        if self.next_number == self._first_number:
            return self._tail_before
        tail = pack_number(self.next_number)
        batch.expectations.append(Expectation(TAIL + point, self._tail_before))
        batch.puts.append((TAIL + point, tail))
        return tail

    @property
    def is_empty(self) -> bool:
        batch = self.batch
        return not (batch.puts or batch.deletes or batch.adds or batch.range_deletes)

    def expect(self, key: bytes, value: bytes | None) -> None:
        """Expect what was read under a key, if other processes may have changed it since."""
        if self.is_shared:
            self.batch.expectations.append(Expectation(key, value))

    def _count(self, channel: bytes, state: int, messages: int, size: int, *, items: int | None = None) -> None:
        counts = self._counters.get(channel)
        if counts is None:
            counts = self._counters[channel] = [0, 0, 0, 0]
        counts[state] += messages
        counts[_BYTES] += size
        self.bytes_delta += size
        self.items_delta += messages if items is None else items

    def _session_entry(self, channel: bytes, session_id: str, number: int, group: bytes) -> tuple[bytes, bytes]:
        part = session_part(session_id)
        key = b"%b%b%b%b%b%b" % (SESSION_MESSAGES, self.point, channel, group, part, pack_number(number))
        return key, session_value(session_id, part)
