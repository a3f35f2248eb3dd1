"""The matrix of clients: which there are, and what its table says of them."""

from __future__ import annotations

from conformance.clients.environments import CLIENTS
from conformance.clients.run import CHECKS, OK, Row, report
from conformance.stores import LMDB, POSTGRES

GOOD = dict.fromkeys(CHECKS, OK)


def test_each_client_has_a_folder_of_its_own_package_and_version() -> None:
    folders = {client.folder_name: (client.package, client.wanted) for client in CLIENTS}
    assert len(folders) == len({(client.package, client.wanted) for client in CLIENTS})
    assert {"python-4.3.1", "python-4.9.0", "python-newest", "javascript-3.17.0"} <= set(folders)


def test_a_row_is_good_when_every_check_is() -> None:
    assert Row(CLIENTS[0], "4.3.1", GOOD).is_good
    assert not Row(CLIENTS[0], "4.3.1", {**GOOD, "pages": "AssertionError: 1 is not 2"}).is_good
    assert not Row(CLIENTS[0], "4.3.1", {"items": OK}).is_good


def test_the_table_has_a_row_for_each_client_and_tells_what_went_wrong() -> None:
    bad = {**GOOD, "TOP": "AssertionError: 6 is not 7"}
    text = report([Row(CLIENTS[0], "4.3.1", GOOD), Row(CLIENTS[1], "4.3.1", bad)], LMDB)
    assert f"| azure-cosmos 4.3.1, blocking | {' | '.join(['yes'] * len(CHECKS))} |" in text
    assert "| azure-cosmos 4.3.1, asyncio | yes |" in text
    assert "- azure-cosmos 4.3.1, asyncio, TOP: AssertionError: 6 is not 7" in text
    assert "What went wrong" not in report([Row(CLIENTS[0], "4.3.1", GOOD)], POSTGRES)
