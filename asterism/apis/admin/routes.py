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
from asterism.apis.admin.captures import (
    show_capture_records,
    show_capture_salt,
    show_captures,
    start_capture,
    stop_capture,
)
from asterism.apis.admin.health import show_health
from asterism.apis.admin.messaging.browser import show_messages
from asterism.apis.admin.messaging.definitions import create_entity, delete_entity
from asterism.apis.admin.messaging.entities import change_fragment, show_entity
from asterism.apis.admin.messaging.hubs import change_group, send_events, show_events, show_hub
from asterism.apis.admin.messaging.lag import show_lag
from asterism.apis.admin.messaging.listing import show_entities
from asterism.apis.admin.messaging.purging import purge_messages
from asterism.apis.admin.messaging.resubmission import resubmit_dead_letters
from asterism.apis.admin.messaging.transfers import receive_messages, send_messages, settle_messages
from asterism.apis.admin.metrics_text import show_metrics
from asterism.apis.admin.mongo_collections import show_collections
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
from asterism.apis.admin.overview import show_overview
from asterism.apis.admin.partitions import show_partitions
from asterism.apis.admin.plans import (
    plan_create,
    plan_delete,
    plan_merge,
    plan_move,
    plan_split,
    plan_throughput,
)
from asterism.apis.admin.promotions import end_promotion, forget_promotion, post_promotion, show_promotions
from asterism.apis.admin.query import run_query
from asterism.apis.admin.rekeys import begin_rekey, show_rekeys, switch_rekey
from asterism.apis.admin.reshapes import (
    begin_merge,
    begin_split,
    show_history,
    show_jobs,
    show_merge_plan,
)
from asterism.apis.admin.scratch import create_scratch_database
from asterism.apis.admin.server_facts import show_server
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.synthetic_keys import explain_synthetic_key
from asterism.apis.admin.usage import show_usage
from asterism.apis.transports.http import Answer, Request

Handler = Callable[[AdminServices, Request], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    handle: Handler
    help: str
    signed: bool = True
    # A POST that changes nothing, so that a read-only key may send it.
    is_query: bool = False
    # A key itself will do, as a bearer token, for programs that cannot sign.
    takes_bearer: bool = False
    # Reaches data of the account only that the request names; the others concern the whole server.
    scoped: bool = False


RouteKey = tuple[str, str]

ROUTES: dict[RouteKey, Route] = {
    ("GET", "_asterism/health"): Route(show_health, "The readiness probe; needs no key.", signed=False),
    ("GET", "_asterism/metrics"): Route(
        show_metrics,
        "Counters and sizes in the text format of Prometheus, also for a bearer of a key.",
        takes_bearer=True,
    ),
    ("GET", "_asterism/server"): Route(show_server, "The server itself: account, throttling, address of its web page."),
    ("GET", "_asterism/accounts"): Route(show_accounts, "The accounts, without their keys."),
    ("POST", "_asterism/accounts"): Route(create_account, "Creates one: name, kind, consistency, quotas, keys."),
    ("POST", "_asterism/accounts/change"): Route(change_account, "Changes one: name, consistency, quotas."),
    ("POST", "_asterism/accounts/keys"): Route(show_account_keys, "The four keys of one: name."),
    ("POST", "_asterism/accounts/rotate"): Route(rotate_account_key, "Replaces a key: name, which, key."),
    ("POST", "_asterism/accounts/delete"): Route(delete_account, "Deletes one: name, with_data."),
    ("GET", "_asterism/overview"): Route(
        show_overview, "Databases and collections, ?search=&offset=&limit=&sort=name|bytes|items|ru", scoped=True
    ),
    ("GET", "_asterism/collections"): Route(
        show_collections, "Collections of MongoDB with their indexes, of ?database=&container=", scoped=True
    ),
    ("GET", "_asterism/partitions"): Route(
        show_partitions, "Physical partitions, of ?database=&container= or of ?account=&table=", scoped=True
    ),
    ("GET", "_asterism/usage"): Route(
        show_usage, "The usage of each partition over time, of the same, with &seconds=3600&points=360", scoped=True
    ),
    ("POST", "_asterism/query"): Route(
        run_query,
        "A page of a query's results: database, container, query, parameters, explain.",
        is_query=True,
        scoped=True,
    ),
    ("POST", "_asterism/split"): Route(begin_split, "Begins a split: database, container, range.", scoped=True),
    ("POST", "_asterism/merge"): Route(
        begin_merge, "Begins a merge of adjacent partitions: database, container, ranges.", scoped=True
    ),
    ("GET", "_asterism/merge-plan"): Route(
        show_merge_plan, "Neighbours worth merging, ?database=&container=", scoped=True
    ),
    ("GET", "_asterism/plan/throughput"): Route(
        plan_throughput,
        "Consequences of other throughput, ?database=&container=&throughput=&autoscale=true",
        scoped=True,
    ),
    ("GET", "_asterism/plan/create"): Route(
        plan_create, "Partitions of a new container, ?database=&throughput=&autoscale=true", scoped=True
    ),
    ("GET", "_asterism/plan/split"): Route(
        plan_split, "Consequences of a split, ?database=&container=&range=", scoped=True
    ),
    ("GET", "_asterism/plan/merge"): Route(
        plan_merge, "Consequences of a merge, ?database=&container=&ranges=0,1", scoped=True
    ),
    ("GET", "_asterism/plan/move"): Route(
        plan_move, "Consequences of a move, ?database=&container=&range=&node=", scoped=True
    ),
    ("GET", "_asterism/plan/delete"): Route(
        plan_delete, "Items and bytes that a deletion would remove, ?database=&container=", scoped=True
    ),
    ("POST", "_asterism/synthetic-key/explain"): Route(
        explain_synthetic_key,
        "A synthetic key in words, and the keys that it gives an item: partition_key, item.",
        is_query=True,
        scoped=True,
    ),
    ("GET", "_asterism/nodes"): Route(show_nodes, "The nodes: partitions, bytes, RU, health, standbys."),
    ("POST", "_asterism/move"): Route(begin_move, "Moves a partition: database, container, range, node.", scoped=True),
    ("GET", "_asterism/rebalance"): Route(show_rebalance, "The moves that would even out the nodes."),
    ("POST", "_asterism/rebalance"): Route(begin_rebalance, "Carries these moves out."),
    ("GET", "_asterism/drain"): Route(show_drain, "How far a node is emptied, ?node="),
    ("POST", "_asterism/drain"): Route(begin_drain, "Moves everything off a node: node, undo."),
    ("GET", "_asterism/placement"): Route(
        show_placement, "Where a container may be, ?database=&container=", scoped=True
    ),
    ("POST", "_asterism/placement"): Route(
        change_placement, "Sets that: database, container, labels, spread, or default.", scoped=True
    ),
    ("GET", "_asterism/migration"): Route(show_migration, "Where the data is, and how far a migration is."),
    ("POST", "_asterism/migration"): Route(begin_migration, "Moves everything: directory, or fleet and where."),
    ("GET", "_asterism/jobs"): Route(
        show_jobs, "Splits, merges, moves and index transformations under way.", scoped=True
    ),
    ("POST", "_asterism/rekey"): Route(
        begin_rekey, "Copies to another key: database, container, target, path, synthetic."
    ),
    ("POST", "_asterism/rekey/switch"): Route(switch_rekey, "Ends a copying when both are equal: database, target."),
    ("GET", "_asterism/rekeys"): Route(show_rekeys, "Containers being copied to another partition key."),
    ("POST", "_asterism/scratch"): Route(
        create_scratch_database,
        "Creates a database for trials, which is dropped when its lease ends: lease_seconds, partitions.",
        scoped=True,
    ),
    ("GET", "_asterism/capture"): Route(
        show_captures, "The captures of requests, or the one of ?database=&container=", scoped=True
    ),
    ("POST", "_asterism/capture/start"): Route(
        start_capture,
        "Begins to capture requests: database, container, sampling, bytes_max, seconds_max, values.",
        scoped=True,
    ),
    ("POST", "_asterism/capture/stop"): Route(stop_capture, "Ends that: database, container.", scoped=True),
    ("GET", "_asterism/capture/records"): Route(
        show_capture_records, "The captured requests, a JSON text in each line, of ?database=&container=", scoped=True
    ),
    ("GET", "_asterism/capture/salt"): Route(
        show_capture_salt, "The key of the digests in a capture, of ?database=&container=", scoped=True
    ),
    ("POST", "_asterism/promotions"): Route(
        post_promotion, "Moves a partition key on line: database, container, key, target, ru or autoscale, path."
    ),
    ("POST", "_asterism/promotions/end"): Route(
        end_promotion, "Ends the forwarding of its requests: database, container, key."
    ),
    ("POST", "_asterism/promotions/forget"): Route(
        forget_promotion, "Admits the key to the old container again: database, container, key."
    ),
    ("GET", "_asterism/promotions"): Route(
        show_promotions, "Partition keys in containers of their own, and the use of their rules."
    ),
    ("GET", "_asterism/messaging/entities"): Route(
        show_entities,
        "Hubs, queues, topics and subscriptions, ?namespace=&kinds=hub,queue&search=&offset=&limit=",
        scoped=True,
    ),
    ("POST", "_asterism/messaging/create"): Route(
        create_entity, "Creates a hub, queue, topic or subscription: namespace, entity, kind, settings.", scoped=True
    ),
    ("POST", "_asterism/messaging/delete"): Route(
        delete_entity, "Deletes one with its messages: namespace, entity, kind.", scoped=True
    ),
    ("GET", "_asterism/messaging/hub"): Route(
        show_hub, "The partitions and consumer groups of a hub, ?namespace=&hub=&offset=&limit=", scoped=True
    ),
    ("POST", "_asterism/messaging/groups"): Route(
        change_group, "Creates or deletes a consumer group: namespace, hub, group, delete.", scoped=True
    ),
    ("GET", "_asterism/messaging/lag"): Route(
        show_lag, "The lag of consumer groups by their checkpoints, ?namespace=&hub=&account=&container=", scoped=True
    ),
    ("GET", "_asterism/messaging/events"): Route(
        show_events, "Events of a partition, ?namespace=&hub=&partition=&from=&count=", scoped=True
    ),
    ("POST", "_asterism/messaging/events"): Route(
        send_events, "Sends events: namespace, hub, partition or partition_key, events.", scoped=True
    ),
    ("GET", "_asterism/messaging/entity"): Route(
        show_entity,
        "Counts, fragments, settings, rules of a queue, topic or subscription, ?namespace=&entity=",
        scoped=True,
    ),
    ("POST", "_asterism/messaging/fragment"): Route(
        change_fragment, "Closes or opens a fragment: namespace, entity, fragment, is_closed.", scoped=True
    ),
    ("GET", "_asterism/messaging/messages"): Route(
        show_messages,
        "Messages as they are, ?namespace=&entity=&queue=main|dead-letter|transfer-dead-letter&from=&count=&session=",
        scoped=True,
    ),
    ("POST", "_asterism/messaging/send"): Route(
        send_messages, "Sends messages, all or none: namespace, entity, messages.", scoped=True
    ),
    ("POST", "_asterism/messaging/receive"): Route(
        receive_messages,
        "Takes messages: namespace, entity, queue, count, mode (peek-lock or delete), wait_seconds, session.",
        scoped=True,
    ),
    ("POST", "_asterism/messaging/settle"): Route(
        settle_messages,
        "Completes, abandons, defers, releases or dead-letters them: namespace, entity, queue, lock_tokens, action.",
        scoped=True,
    ),
    ("POST", "_asterism/messaging/resubmit"): Route(
        resubmit_dead_letters,
        "Sends dead letters again: namespace, entity, queue, sequence_numbers or count.",
        scoped=True,
    ),
    ("POST", "_asterism/messaging/purge"): Route(
        purge_messages, "Removes messages, as many as in some seconds: namespace, entity, queue.", scoped=True
    ),
    ("GET", "_asterism/history"): Route(
        show_history, "Splits and merges that are over, ?database=&container=", scoped=True
    ),
}


def operation_of(key: RouteKey) -> str:
    """Return the name of a route's operation in metrics and logs: `get_merge_plan`, `post_rekey_switch`."""
    verb, path = key
    return f"{verb.lower()}_{path.removeprefix('_asterism/')}".replace("/", "_").replace("-", "_")
