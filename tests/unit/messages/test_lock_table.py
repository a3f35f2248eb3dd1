"""The table of locks: ends in their order, however the locks came, and none that outlive their locks for long."""

from hypothesis import given
from hypothesis import strategies as st

from asterism.models.messages.layout import NEVER, place_of_token, token_of, tokens_of
from asterism.models.messages.locks import Lock, LockTable
from asterism.models.messages.records import DEFAULT_STATE, Facts

ENDS = st.integers(1, 1000)


def lock_of(number: int, until_ms: int) -> Lock:
    facts = Facts(b"\0\0\0\0", number, 1, NEVER, None, None, DEFAULT_STATE)
    return Lock(facts, number.to_bytes(16, "big"), until_ms)


@given(st.lists(st.tuples(ENDS, st.integers(1, 5)), min_size=1, max_size=20), ENDS)
def test_locks_of_several_claims_end_in_order(claims: list[tuple[int, int]], now_ms: int) -> None:
    table = LockTable()
    ends: list[int] = []
    for until_ms, count in claims:
        table.add_all([lock_of(len(ends) + place, until_ms) for place in range(count)], until_ms)
        ends += [until_ms] * count
    assert table.earliest_end() == min(ends)
    ended = [lock.until_ms for lock in table.pop_ended(now_ms, 1000)]
    assert ended == sorted(until_ms for until_ms in ends if until_ms <= now_ms)


def test_a_table_that_is_never_empty_forgets_the_ends_of_settled_locks() -> None:
    table = LockTable()
    kept = lock_of(0, 900)
    table.add_all([kept], 900)
    for number in range(1, 20_001):
        lock = lock_of(number, 1000)
        table.add_all([lock], 1000)
        table.remove([lock])
    assert len(table._ends) < 5000
    assert table.earliest_end() == 900
    table.remove([kept])
    assert table.earliest_end() is None


@given(st.integers(0, 2**16 - 1), st.lists(st.integers(1, 2**48 - 1), max_size=5))
def test_tokens_made_together_are_those_made_one_by_one(fragment: int, numbers: list[int]) -> None:
    randoms = bytes(range(8 * len(numbers)))
    tokens = tokens_of(fragment, numbers, randoms)
    assert tokens == [token_of(fragment, number, randoms[8 * at : 8 * at + 8]) for at, number in enumerate(numbers)]
    assert [place_of_token(token) for token in tokens] == [(fragment, number) for number in numbers]
