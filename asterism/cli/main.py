"""The `asterism` program: one command per module, and every failure in one line.

The imports of a command happen when it runs, so that `serve` starts fast.
"""

from __future__ import annotations

import os
import sys

import typer

from asterism.cli.accounts import accounts
from asterism.cli.advise import ADVISE_EXAMPLES, advise
from asterism.cli.blobs import BLOBS_EXAMPLES, blobs
from asterism.cli.bus import BUS_EXAMPLES, bus
from asterism.cli.capture import CAPTURE_EXAMPLES, capture
from asterism.cli.collections import COLLECTIONS_EXAMPLES, collections
from asterism.cli.demo import DEMO_EXAMPLES, demo
from asterism.cli.drain import drain
from asterism.cli.export import EXPORT_EXAMPLES, export
from asterism.cli.failure import CommandFailed
from asterism.cli.graphs import graphs
from asterism.cli.gremlin import GREMLIN_EXAMPLES, gremlin
from asterism.cli.hubs import HUBS_EXAMPLES, hubs
from asterism.cli.import_command import IMPORT_EXAMPLES, import_
from asterism.cli.jobs import jobs
from asterism.cli.keys import KEYS_EXAMPLES, keys
from asterism.cli.merge import merge
from asterism.cli.migrate import MIGRATE_EXAMPLES, migrate
from asterism.cli.move import MOVE_EXAMPLES, move
from asterism.cli.nodes import nodes
from asterism.cli.partitions import partitions
from asterism.cli.placement import PLACEMENT_EXAMPLES, placement
from asterism.cli.promote_tenant import PROMOTE_TENANT_EXAMPLES, promote_tenant
from asterism.cli.query import QUERY_EXAMPLES, query
from asterism.cli.queues import QUEUES_EXAMPLES, queues
from asterism.cli.rebalance import rebalance
from asterism.cli.rekey import REKEY_EXAMPLES, rekey
from asterism.cli.serve import SERVE_EXAMPLES, serve
from asterism.cli.simulate import SIMULATE_EXAMPLES, simulate
from asterism.cli.split import split
from asterism.cli.synthetic_key import SYNTHETIC_KEY_EXAMPLES, synthetic_key
from asterism.cli.version import version

app = typer.Typer(
    name="asterism",
    help="An open, partitioned database that speaks Azure's data protocols.",
    epilog="Start with: asterism serve   Then: asterism partitions DATABASE CONTAINER",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(rich_help_panel="The server", epilog=SERVE_EXAMPLES)(serve)
app.command(rich_help_panel="The server", epilog=KEYS_EXAMPLES)(keys)
app.add_typer(accounts, name="accounts", rich_help_panel="The server")
app.command(rich_help_panel="The server")(version)
app.command(rich_help_panel="Data of a running server", epilog=QUERY_EXAMPLES, no_args_is_help=True)(query)
app.command(rich_help_panel="Data of a running server", epilog=GREMLIN_EXAMPLES, no_args_is_help=True)(gremlin)
app.add_typer(graphs, name="graphs", rich_help_panel="Data of a running server")
app.command(rich_help_panel="Data of a running server", epilog=COLLECTIONS_EXAMPLES)(collections)
app.add_typer(blobs, name="blobs", rich_help_panel="Data of a running server", epilog=BLOBS_EXAMPLES)
app.add_typer(queues, name="queues", rich_help_panel="Data of a running server", epilog=QUEUES_EXAMPLES)
app.add_typer(bus, name="bus", rich_help_panel="Data of a running server", epilog=BUS_EXAMPLES)
app.add_typer(hubs, name="hubs", rich_help_panel="Data of a running server", epilog=HUBS_EXAMPLES)
app.command(rich_help_panel="Data of a running server", epilog=EXPORT_EXAMPLES, no_args_is_help=True)(export)
app.command("import", rich_help_panel="Data of a running server", epilog=IMPORT_EXAMPLES, no_args_is_help=True)(import_)
app.add_typer(
    synthetic_key, name="synthetic-key", rich_help_panel="Data of a running server", epilog=SYNTHETIC_KEY_EXAMPLES
)
app.command(rich_help_panel="Data of a running server", epilog=ADVISE_EXAMPLES, no_args_is_help=True)(advise)
app.command(rich_help_panel="Data of a running server", epilog=REKEY_EXAMPLES, no_args_is_help=True)(rekey)
app.command(rich_help_panel="Data of a running server", epilog=PROMOTE_TENANT_EXAMPLES, no_args_is_help=True)(
    promote_tenant
)
app.command(rich_help_panel="Partitions of a running server")(partitions)
app.command(rich_help_panel="Partitions of a running server", no_args_is_help=True)(split)
app.command(rich_help_panel="Partitions of a running server", no_args_is_help=True)(merge)
app.command(rich_help_panel="Partitions of a running server")(jobs)
app.add_typer(capture, name="capture", epilog=CAPTURE_EXAMPLES, rich_help_panel="Partitions of a running server")
app.command(rich_help_panel="Partitions of a running server", epilog=DEMO_EXAMPLES)(demo)
app.command(rich_help_panel="A fleet of nodes")(nodes)
app.command(rich_help_panel="A fleet of nodes", epilog=PLACEMENT_EXAMPLES, no_args_is_help=True)(placement)
app.command(rich_help_panel="A fleet of nodes", epilog=MOVE_EXAMPLES, no_args_is_help=True)(move)
app.command(rich_help_panel="A fleet of nodes")(rebalance)
app.command(rich_help_panel="A fleet of nodes", no_args_is_help=True)(drain)
app.command(rich_help_panel="A fleet of nodes", epilog=MIGRATE_EXAMPLES, no_args_is_help=True)(migrate)
app.command(rich_help_panel="A fleet of nodes", epilog=SIMULATE_EXAMPLES, no_args_is_help=True)(simulate)


def main() -> None:
    try:
        app(prog_name="asterism")
    except CommandFailed as failure:
        typer.echo(f"asterism: {failure}" + (f"\n{failure.detail}" if failure.detail else ""), err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output (a pager, head) has closed it; the interpreter must not fail on flushing the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
