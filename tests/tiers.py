"""The tier of every test, by its folder: what it needs, and so what it costs.

`make test` runs all of them, stores in memory where a test is not about an engine; `make test-all` runs them again on
every engine. CONTRIBUTING.md says what runs when.
"""

from __future__ import annotations

TIERS = {
    "pure": "rules, codecs and languages: no store and no other process",
    "store": "a database in this process, on the store in memory unless ASTERISM_TEST_STORE names another",
    "client": "a server in a process of its own, and an official client or a browser",
    "fault": "processes that are killed or cut off",
    "fleet": "PostgreSQL servers",
}

# The longest prefix of a test's path counts.
_TIER_OF_PATH = {
    "tests/architecture": "pure",
    "tests/browser": "client",
    "tests/cases": "pure",
    "tests/clients": "client",
    "tests/clients/test_fleet": "fleet",
    "tests/clients/test_migrate": "fleet",
    "tests/contracts": "store",
    "tests/contracts/test_storage_postgres": "fleet",
    "tests/faults": "fault",
    "tests/faults/test_catalog_drain": "fleet",
    "tests/faults/test_fleet": "fleet",
    "tests/faults/test_migration": "fleet",
    "tests/faults/test_postgres": "fleet",
    "tests/faults/test_replica_set": "fleet",
    "tests/simulation": "store",
    "tests/unit": "store",
    "tests/unit/access": "pure",
    "tests/unit/advisor": "pure",
    "tests/unit/amqp": "pure",
    "tests/unit/amqp_engine/test_clients": "client",
    "tests/unit/apis": "pure",
    "tests/unit/benchmarks": "pure",
    "tests/unit/blob_codecs": "pure",
    "tests/unit/blob_query": "pure",
    "tests/unit/bus": "pure",
    "tests/unit/bus/test_nodes": "store",
    "tests/unit/bus_sql": "pure",
    "tests/unit/cli": "pure",
    "tests/unit/conformance": "pure",
    "tests/unit/metrics": "pure",
    "tests/unit/listeners": "client",
    "tests/unit/partitioning": "pure",
    "tests/unit/query": "pure",
    "tests/unit/storage": "pure",
    "tests/unit/storage_doors": "pure",
    "tests/unit/support": "pure",
    "tests/unit/throughput": "pure",
    "tests/unit/transports": "pure",
    "tests/unit/values": "pure",
}


def tier_of(path: str) -> str:
    """Return the tier of a test module, given its path from the root of the project."""
    fitting = [prefix for prefix in _TIER_OF_PATH if path.startswith(prefix)]
    if not fitting:
        raise ValueError(f"{path} has no tier; give its folder a row in tests/tiers.py")
    return _TIER_OF_PATH[max(fitting, key=len)]
