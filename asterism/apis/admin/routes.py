"""The operations of the admin door, one line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from asterism.apis.admin.accounts import (
    change_account,
    create_account,
    delete_account,
    rotate_account_key,
    show_account_keys,
    show_accounts,
)
from asterism.apis.admin.health import show_health
from asterism.apis.admin.metrics_text import show_metrics
from asterism.apis.admin.nodes import (
    begin_drain,
    begin_migration,
    begin_move,
    begin_rebalance,
    change_placement,
    show_drain,
    show_migration,
    show_nodes,
    show_placement,
    show_rebalance,
)
from asterism.apis.admin.partitions import show_partitions
from asterism.apis.admin.query import run_query
from asterism.apis.admin.rekeys import begin_rekey, show_rekeys, switch_rekey
from asterism.apis.admin.reshapes import (
    begin_merge,
    begin_split,
    show_history,
    show_jobs,
    show_merge_plan,
)
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response

Handler = Callable[[AdminServices, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    handle: Handler
    help: str
    signed: bool = True
    # A POST that changes nothing, so that a read-only key may send it.
    is_query: bool = False
    # A key itself will do, as a bearer token, for programs that cannot sign.
    takes_bearer: bool = False


RouteKey = tuple[str, str]

ROUTES: dict[RouteKey, Route] = {
    ("GET", "_asterism/health"): Route(show_health, "The readiness probe; needs no key.", signed=False),
    ("GET", "_asterism/metrics"): Route(
        show_metrics,
        "Counters and sizes in the text format of Prometheus, also for a bearer of a key.",
        takes_bearer=True,
    ),
    ("GET", "_asterism/accounts"): Route(show_accounts, "The accounts, without their keys."),
    ("POST", "_asterism/accounts"): Route(create_account, "Creates one: name, kind, consistency, quotas, keys."),
    ("POST", "_asterism/accounts/change"): Route(change_account, "Changes one: name, consistency, quotas."),
    ("POST", "_asterism/accounts/keys"): Route(show_account_keys, "The four keys of one: name."),
    ("POST", "_asterism/accounts/rotate"): Route(rotate_account_key, "Replaces a key: name, which, key."),
    ("POST", "_asterism/accounts/delete"): Route(delete_account, "Deletes one: name, with_data."),
    ("GET", "_asterism/partitions"): Route(
        show_partitions, "Physical partitions, of ?database=&container= or of ?account=&table="
    ),
    ("POST", "_asterism/query"): Route(
        run_query, "A page of a query's results: database, container, query, parameters, explain.", is_query=True
    ),
    ("POST", "_asterism/split"): Route(begin_split, "Begins a split: database, container, range."),
    ("POST", "_asterism/merge"): Route(
        begin_merge, "Begins a merge of adjacent partitions: database, container, ranges."
    ),
    ("GET", "_asterism/merge-plan"): Route(show_merge_plan, "Neighbours worth merging, ?database=&container="),
    ("GET", "_asterism/nodes"): Route(show_nodes, "The nodes: partitions, bytes, RU, health, standbys."),
    ("POST", "_asterism/move"): Route(begin_move, "Moves a partition: database, container, range, node."),
    ("GET", "_asterism/rebalance"): Route(show_rebalance, "The moves that would even out the nodes."),
    ("POST", "_asterism/rebalance"): Route(begin_rebalance, "Carries these moves out."),
    ("GET", "_asterism/drain"): Route(show_drain, "How far a node is emptied, ?node="),
    ("POST", "_asterism/drain"): Route(begin_drain, "Moves everything off a node: node, undo."),
    ("GET", "_asterism/placement"): Route(show_placement, "Where a container may be, ?database=&container="),
    ("POST", "_asterism/placement"): Route(
        change_placement, "Sets that: database, container, labels, spread, or default."
    ),
    ("GET", "_asterism/migration"): Route(show_migration, "Where the data is, and how far a migration is."),
    ("POST", "_asterism/migration"): Route(begin_migration, "Moves everything: directory, or fleet and where."),
    ("GET", "_asterism/jobs"): Route(show_jobs, "Splits, merges, moves and index transformations under way."),
    ("POST", "_asterism/rekey"): Route(begin_rekey, "Copies to another key: database, container, target, path."),
    ("POST", "_asterism/rekey/switch"): Route(switch_rekey, "Ends a copying when both are equal: database, target."),
    ("GET", "_asterism/rekeys"): Route(show_rekeys, "Containers being copied to another partition key."),
    ("GET", "_asterism/history"): Route(show_history, "Splits and merges that are over, ?database=&container="),
}


def operation_of(key: RouteKey) -> str:
    """Return the name of a route's operation in metrics and logs: `get_merge_plan`, `post_rekey_switch`."""
    verb, path = key
    return f"{verb.lower()}_{path.removeprefix('_asterism/')}".replace("/", "_").replace("-", "_")
