"""Traversals that write, with the real client: each is a unit within a logical partition, and racing ones agree."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError

from tests.clients.gremlin_door import Door, results
from tests.support.server import WAIT_SECONDS_MAX, RunningServer

RACERS = 6
ROUNDS = 5


@pytest.fixture
def door(server: RunningServer, database: DatabaseProxy, container: ContainerProxy) -> Door:
    return Door(server, database.id, container.id)


def refusal(client: Client, text: str, **bindings: Any) -> tuple[int, int]:
    with pytest.raises(GremlinServerError) as refused:
        results(client, text, bindings)
    return refused.value.status_code, refused.value.status_attributes["x-ms-status-code"]


def add(client: Client, name: str, key: str) -> None:
    results(client, "g.addV('person').property('id', i).property('pk', k)", {"i": name, "k": key})


def race(door: Door, write: Callable[[Client, int, int], Any]) -> list[Any]:
    """Let several connections write at the same moment, some times; return all answers."""
    start = Barrier(RACERS)

    def run(racer: int) -> list[Any]:
        with door.client() as client:
            found = []
            for number in range(ROUNDS):
                start.wait(WAIT_SECONDS_MAX)
                found.append(write(client, number, racer))
            return found

    with ThreadPoolExecutor(RACERS) as threads:
        return [answer for answers in threads.map(run, range(RACERS)) for answer in answers]


# --- units ----------------------------------------------------------------------------------------------------------

TWO = "g.addV('n').property('id','a').property('pk','p').as('a').addV('n').property('id','b').property('pk','p')"


@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        (".addE('knows').to('a').fail('enough')", 595, 1000),
        (".addV('person').property('id','c')", 597, 1000),
        (".addV('person').property('id','known').property('pk','p')", 500, 409),
        (".addV('person').property('id','a').property('pk','p')", 500, 409),
        (".addE('knows').to(__.V('nobody'))", 597, 1000),
        (".property('name', ['x': 1])", 597, 1000),
        (
            ".addV('n').property('id','c').property('pk','q').addV('n').property('id','known').property('pk','p')",
            500,
            409,
        ),
    ],
)
def test_a_traversal_that_fails_at_its_end_leaves_nothing(door: Door, end: str, code: int, status: int) -> None:
    with door.client() as client:
        add(client, "known", "p")
        assert refusal(client, TWO + end) == (code, status)
        assert results(client, "g.V().id()") == ["known"]
        assert results(client, "g.E().count()") == [0]


def test_changes_and_removals_of_a_traversal_that_fails_are_undone(door: Door) -> None:
    with door.client() as client:
        results(client, TWO + ".addE('knows').to('a').property('since', 1)")
        drops = ".sideEffect(__.inE().drop()).sideEffect(__.V(['p','b']).drop())"
        assert refusal(client, f"g.V(['p','a']).property('age', 1){drops}.fail()") == (595, 1000)
        assert results(client, "g.V(['p','a']).values('age')") == []
        assert results(client, "g.V(['p','a']).in('knows').id()") == ["b"]


def test_a_traversal_over_several_partitions_is_written_in_all_of_them(door: Door) -> None:
    with door.client() as client:
        chain = "g.addV('n').property('id','v0').property('pk','k0').as('v0')"
        for number in range(1, 8):
            chain += f".addV('n').property('id','v{number}').property('pk','k{number}').as('v{number}')"
        for number in range(7):
            chain += f".addE('next').from('v{number}').to('v{number + 1}')"
        results(client, chain)
        assert results(client, "g.V(['k0','v0']).repeat(__.out('next')).times(7).id()") == ["v7"]
        assert results(client, "g.V(['k7','v7']).repeat(__.in('next')).times(7).id()") == ["v0"]


def test_drop_of_a_vertex_takes_the_edges_of_both_directions(door: Door) -> None:
    with door.client() as client:
        for name in "abc":
            add(client, name, f"k-{name}")
        for source, target in ("ab", "bc", "ca", "bb"):
            text = "g.V([k, s]).addE('next').to(g.V([j, t]))"
            results(client, text, {"k": f"k-{source}", "s": source, "j": f"k-{target}", "t": target})
        assert results(client, "g.V(['k-b','b']).drop()") == []
        assert results(client, "g.E().project('from','to').by(__.outV().id()).by(__.inV().id())") == [
            {"from": "c", "to": "a"}
        ]
        assert results(client, "g.V(['k-a','a']).outE().count()") == [0]
        assert results(client, "g.V(['k-c','c']).inE().count()") == [0]


def test_an_id_that_exists_is_refused_in_its_logical_partition_only(door: Door) -> None:
    with door.client() as client:
        add(client, "a", "p")
        add(client, "a", "q")
        assert refusal(client, "g.addV('person').property('id','a').property('pk','p')") == (500, 409)
        results(client, "g.V(['p','a']).addE('knows').to(g.V(['q','a'])).property('id','e')")
        again = "g.V(['p','a']).addE('knows').to(g.V(['q','a'])).property('id','e')"
        assert refusal(client, again) == (500, 409)
        assert results(client, "g.V().count()") == [2]
        assert results(client, "g.E().count()") == [1]


# --- versions -------------------------------------------------------------------------------------------------------


def test_a_change_on_the_condition_of_an_old_version_changes_nothing(door: Door, container: ContainerProxy) -> None:
    with door.client() as client:
        add(client, "a", "p")
        version = container.read_item("a", "p")["_etag"]
        change = "g.V(['p','a']).has('_etag', version).property('age', age).values('age')"
        assert results(client, change, {"version": version, "age": 1}) == [1]
        assert results(client, change, {"version": version, "age": 2}) == []
        assert results(client, "g.V(['p','a']).values('age')") == [1]


def test_of_changes_of_the_same_version_only_the_first_counts(door: Door, container: ContainerProxy) -> None:
    with door.client() as client:
        add(client, "a", "p")
    versions = []

    def change(client: Client, number: int, racer: int) -> str:
        if racer == 0:
            versions.append(container.read_item("a", "p")["_etag"])
        met.wait(WAIT_SECONDS_MAX)
        text = "g.V(['p','a']).has('_etag', version).property(list, 'by', by).id()"
        try:
            found = results(client, text, {"version": versions[number], "by": f"{number}-{racer}"})
        except GremlinServerError as problem:
            # The version was changed between the look and the write.
            return "refused" if problem.status_attributes["x-ms-status-code"] == 412 else str(problem)
        return "changed" if found else "not found"

    met = Barrier(RACERS)
    answers = race(door, change)
    assert answers.count("changed") == ROUNDS
    assert set(answers) <= {"changed", "refused", "not found"}
    with door.client() as client:
        assert len(results(client, "g.V(['p','a']).values('by')")) == ROUNDS


# --- races ----------------------------------------------------------------------------------------------------------

NEW_VERTEX = "__.addV('person').property('id', i).property('pk','p')"
VERTEX_UPSERTS = {
    "merge by id": "g.mergeV([(T.id): i, (T.label): 'n', pk: 'p']).option(onCreate, [a: 1]).option(onMatch, [b: true])",
    "merge by properties": "g.mergeV([(T.label): 'person', pk: 'p', name: i])",
    "coalesce": f"g.V(['p', i]).fold().coalesce(__.unfold(), {NEW_VERTEX})",
    "coalesce, changed": f"g.V(['p', i]).fold().coalesce(__.unfold().property('seen', true), {NEW_VERTEX})",
}


@pytest.mark.parametrize("name", list(VERTEX_UPSERTS))
def test_racing_upserts_of_a_vertex_leave_one_and_all_succeed(door: Door, name: str) -> None:
    answers = race(door, lambda client, number, _: results(client, VERTEX_UPSERTS[name], {"i": f"v{number}"}))
    assert all(len(answer) == 1 for answer in answers)
    assert len({answer[0]["id"] for answer in answers}) == ROUNDS
    with door.client() as client:
        assert results(client, "g.V().count()") == [ROUNDS]


ENDS = "(T.label): 'knows', (Direction.OUT): ['p','a'], (Direction.IN): ['q','b']"
NEW_EDGE = "__.addE('knows').to(__.V(['q','b'])).property('id', i)"
EDGE_UPSERTS = {
    "merge by id": f"g.mergeE([(T.id): i, {ENDS}])",
    "merge by ends": f"g.mergeE([{ENDS}, name: i])",
    "coalesce": f"g.V(['p','a']).coalesce(__.outE('knows').hasId(i), {NEW_EDGE})",
}


@pytest.mark.parametrize("name", list(EDGE_UPSERTS))
def test_racing_upserts_of_an_edge_leave_one_and_all_succeed(door: Door, name: str) -> None:
    with door.client() as client:
        add(client, "a", "p")
        add(client, "b", "q")
        answers = race(door, lambda client, number, _: results(client, EDGE_UPSERTS[name], {"i": f"e{number}"}))
        assert len({answer[0]["id"] for answer in answers}) == ROUNDS
        for text in ("g.E().count()", "g.V(['p','a']).outE().count()", "g.V(['q','b']).inE().count()"):
            assert results(client, text) == [ROUNDS]


def test_racing_changes_of_a_vertex_are_all_kept(door: Door) -> None:
    with door.client() as client:
        add(client, "a", "p")
    answers = race(
        door,
        lambda client, number, racer: results(
            client, "g.V(['p','a']).property(list, 'by', x).id()", {"x": f"{number}-{racer}"}
        ),
    )
    assert answers == [["a"]] * (RACERS * ROUNDS)
    with door.client() as client:
        assert len(set(results(client, "g.V(['p','a']).values('by')"))) == RACERS * ROUNDS


def test_what_was_merged_and_changed_since_is_not_in_the_way_of_a_new_merge(door: Door) -> None:
    merge = "g.mergeV([(T.label): 'person', pk: 'p', name: 'x']).id()"
    with door.client() as client:
        (first,) = results(client, merge)
        assert results(client, merge) == [first]
        results(client, "g.V().property('name', 'y')")
        (second,) = results(client, merge)
        assert second != first
        results(client, "g.V().has('name', 'x').property('name', 'z')")
        assert results(client, merge) not in ([first], [second])
        assert results(client, "g.V().count()") == [3]


def test_no_edge_that_races_with_the_drop_of_an_end_stays_behind(door: Door) -> None:
    with door.client() as client:
        add(client, "hub", "h")
        for number in range(ROUNDS):
            add(client, f"v{number}", f"p{number}")
    to_hub = "g.V(['h','hub']).as('h').V([k, i]).addE('to').to('h')"
    from_hub = "g.V([k, i]).as('v').V(['h','hub']).addE('from').to('v')"

    def change(client: Client, number: int, racer: int) -> None:
        text = "g.V([k, i]).drop()" if racer == 0 else to_hub if racer % 2 else from_hub
        for _ in range(1 if racer == 0 else 5):
            # An edge is refused if its end is gone.
            with suppress(GremlinServerError):
                results(client, text, {"k": f"p{number}", "i": f"v{number}"})

    race(door, change)
    with door.client() as client:
        assert results(client, "g.V().id()") == ["hub"]
        assert results(client, "g.E().count()") == [0]
