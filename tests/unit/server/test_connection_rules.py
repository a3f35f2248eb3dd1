"""Which connections are closed: decided from numbers, without a socket or a clock."""

from __future__ import annotations

from dataclasses import dataclass, field

from asterism.limits import KIB, MIB, Limits
from asterism.server.listeners.connection_rules import (
    AnswerBudget,
    Connection,
    ConnectionRules,
    Observed,
    PortConnections,
)

PORT = 8081
LIMITS = Limits(
    first_request_seconds_max=60,
    idle_connection_seconds_max=180,
    answer_pause_seconds_max=30,
    body_pause_seconds_max=30,
)


@dataclass
class World:
    port: PortConnections = field(default_factory=lambda: PortConnections(100))
    answers: AnswerBudget = field(default_factory=lambda: AnswerBudget(10 * MIB))
    rules: ConnectionRules = field(init=False)

    def __post_init__(self) -> None:
        self.rules = ConnectionRules(LIMITS, {PORT: self.port}, self.answers)

    def request(self, client: str, *, answered: int = 0, under_way: int = 0, is_http2: bool = False) -> None:
        connection = self.port.by_client.setdefault(client, Connection(client, is_http2=is_http2))
        connection.request_count += 1
        connection.answered_bytes += answered
        connection.under_way = under_way

    def closed(self, *observed: Observed, now: float) -> list[str]:
        return [closure.observed.client for closure in self.rules.look(observed, now=now)]


def seen(client: str = "a", *, received: int = 100, acked: int = 0, owes: bool = False, quiet: float = 0) -> Observed:
    return Observed(PORT, client, 7, received, acked, owes, quiet)


# S6 of asterism/server/DESIGN.md.
def test_a_connection_without_a_request_has_a_deadline_from_its_start() -> None:
    world = World()
    assert world.closed(seen(received=0, quiet=59), now=1000) == []
    assert world.closed(seen(received=0, quiet=60), now=1001) == ["a"]


def test_bytes_that_are_not_a_request_do_not_move_the_deadline() -> None:
    world = World()
    assert world.closed(seen(received=10), now=0) == []
    assert world.closed(seen(received=20), now=59) == []
    assert world.closed(seen(received=30), now=60) == ["a"]


# S6 of asterism/server/DESIGN.md.
def test_an_idle_connection_is_closed_and_one_in_use_is_not() -> None:
    world = World()
    world.request("idle")
    world.request("busy")
    world.request("at work", under_way=1)
    everything = [seen("idle"), seen("busy"), seen("at work")]
    assert world.closed(*everything, now=0) == []
    world.request("busy")
    assert world.closed(*everything, now=100) == []
    assert world.closed(*everything, now=200) == ["idle"]


def test_a_client_that_takes_nothing_is_closed_without_waiting_for_it() -> None:
    world = World()
    world.request("a", answered=MIB)
    assert world.closed(seen(acked=5, owes=True), now=0) == []
    assert world.closed(seen(acked=5 + 63 * KIB, owes=True), now=29) == []
    (closure,) = world.rules.look([seen(acked=5 + 63 * KIB, owes=True)], now=30)
    assert closure.is_abrupt


def test_a_client_that_takes_64_kilobytes_has_more_time() -> None:
    world = World()
    world.request("a", answered=MIB)
    assert world.closed(seen(acked=0, owes=True), now=0) == []
    assert world.closed(seen(acked=64 * KIB, owes=True), now=29) == []
    assert world.closed(seen(acked=64 * KIB, owes=True), now=58) == []
    assert world.closed(seen(acked=64 * KIB, owes=True), now=59) == ["a"]


def test_the_time_to_read_begins_with_the_answer() -> None:
    world = World()
    world.request("a")
    assert world.closed(seen(), now=0) == []
    assert world.closed(seen(owes=True), now=100) == []
    assert world.closed(seen(), now=120) == []
    assert world.closed(seen(owes=True), now=140) == []


def test_too_many_unread_bytes_close_the_slowest_readers() -> None:
    world = World()
    for client in ("slow", "fast"):
        world.request(client, answered=6 * MIB)
    assert world.closed(seen("slow", owes=True), seen("fast", owes=True), now=0) == []
    assert world.answers.is_exceeded
    assert world.closed(seen("slow", acked=1, owes=True), seen("fast", acked=MIB, owes=True), now=1) == ["slow"]
    assert not world.answers.is_exceeded


def test_unread_bytes_of_http2_streams_count_though_the_kernel_holds_none() -> None:
    world = World()
    world.request("a", answered=11 * MIB, is_http2=True)
    assert world.closed(seen(), now=0) == []
    assert world.closed(seen(acked=17), now=1) == ["a"]


def test_heads_of_answers_do_not_make_up_for_bodies() -> None:
    world = World()
    world.request("a", answered=10, is_http2=True)
    assert world.closed(seen(acked=50 * MIB), now=0) == []
    world.request("a", answered=11 * MIB, is_http2=True)
    assert world.closed(seen(acked=50 * MIB), now=1) == ["a"]


def test_an_answer_counts_as_unread_until_the_next_look() -> None:
    answers = AnswerBudget(10 * MIB)
    assert [answers.add(4 * MIB), answers.is_exceeded] == [False, False]
    assert [answers.add(4 * MIB), answers.is_exceeded] == [True, False]
    assert [answers.add(4 * MIB), answers.is_exceeded] == [True, True]
    ConnectionRules(LIMITS, {}, answers).look([], now=0)
    assert not answers.is_exceeded


def test_near_the_limit_silent_connections_go_first_and_then_the_longest_idle() -> None:
    world = World(port=PortConnections(10))
    for client in "abcdefgh":
        world.request(client)
    world.closed(*map(seen, "abcdefgh"), now=0)
    for client in "bcdefgh":
        world.request(client)
    world.request("b", under_way=1)
    everything = [*map(seen, "abcdefgh"), seen("silent")]
    assert world.closed(*everything, now=10) == ["silent"]
    assert world.rules.is_crowded
    world.request("i")
    world.request("j")
    assert world.closed(*map(seen, "abcdefghij"), now=11) == ["a", "c"]


def test_below_the_limit_nothing_is_closed_for_room() -> None:
    world = World(port=PortConnections(10))
    assert world.closed(*map(seen, "abcdefgh"), now=0) == []
    assert not world.rules.is_crowded


def test_the_state_of_a_closed_connection_is_dropped() -> None:
    world = World()
    world.request("a")
    for now in range(5):
        world.closed(now=now)
    assert world.port.by_client == {}


def test_a_new_connection_from_the_same_address_starts_afresh() -> None:
    world = World()
    world.closed(seen(received=500), now=0)
    assert world.closed(seen(received=5), now=59) == []
    assert world.closed(seen(received=5), now=100) == []


# --- messages that are not HTTP -------------------------------------------------------------------------------------


def test_a_message_that_has_begun_must_go_on_and_a_drop_now_and_then_is_not_enough() -> None:
    world = World()
    world.request("a")
    world.port.by_client["a"].is_within_message = True
    for second in range(30):
        assert world.closed(seen(received=100 + second), now=second) == []
    assert world.closed(seen(received=130), now=30) == ["a"]


def test_a_long_message_may_take_its_time_while_enough_of_it_arrives() -> None:
    world = World()
    world.request("a")
    world.port.by_client["a"].is_within_message = True
    for turn in range(20):
        assert world.closed(seen(received=100 + turn * 64 * KIB), now=turn * 25) == []


def test_a_message_that_is_whole_again_ends_its_deadline() -> None:
    world = World()
    world.request("a")
    world.port.by_client["a"].is_within_message = True
    assert world.closed(seen(), now=0) == []
    world.port.by_client["a"].is_within_message = False
    assert world.closed(seen(), now=29) == []
    assert world.closed(seen(), now=31) == []


def test_a_body_of_http_has_its_own_deadlines() -> None:
    world = World()
    world.request("a", under_way=1)
    world.port.by_client["a"].is_within_message = True
    assert world.closed(seen(), now=0) == []
    assert world.closed(seen(), now=1000) == []


def test_a_connection_can_have_its_own_idle_time() -> None:
    world = World()
    for client, seconds in [("short", 10.0), ("long", 3600.0), ("as all", None)]:
        world.request(client)
        world.port.by_client[client].idle_seconds_max = seconds
    everyone = [seen("short"), seen("long"), seen("as all")]
    assert world.closed(*everyone, now=0) == []
    assert world.closed(*everyone, now=10) == ["short"]
    assert world.closed(*everyone[1:], now=180) == ["as all"]
    assert world.closed(everyone[1], now=3599) == []
    assert world.closed(everyone[1], now=3600) == ["long"]
