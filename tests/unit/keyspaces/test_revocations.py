"""Withdrawn tokens are refused by every process until they would have expired."""

from __future__ import annotations

from asterism.keyspaces.processes.revocations import REVOCATIONS_MAX, Revocations


def test_another_process_hears_of_a_withdrawn_token() -> None:
    here, there = (Revocations(wall_seconds=lambda: 100.0) for _ in range(2))
    hurried: list[bool] = []
    here.on_news = lambda: hurried.append(True)
    here.revoke("token", 200)
    there.hear([{}, here.report()])
    assert here.is_revoked("token")
    assert there.is_revoked("token")
    assert not there.is_revoked("other")
    assert hurried == [True]


def test_expired_tokens_are_forgotten() -> None:
    now = [100.0]
    revocations = Revocations(wall_seconds=lambda: now[0])
    revocations.revoke("token", 200)
    now[0] = 201.0
    assert revocations.report() == {}
    assert not revocations.is_revoked("token")


def test_memory_is_bounded_and_the_oldest_go_first() -> None:
    revocations = Revocations(wall_seconds=lambda: 0.0)
    for number in range(REVOCATIONS_MAX + 1):
        revocations.revoke(str(number), 10)
    assert not revocations.is_revoked("0")
    assert revocations.is_revoked(str(REVOCATIONS_MAX))
    assert len(revocations.report()["revoked"]) == REVOCATIONS_MAX
