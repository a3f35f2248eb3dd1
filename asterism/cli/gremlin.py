"""`asterism gremlin`."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed

GREMLIN_EXAMPLES = """[bold]Examples[/bold]

Vertices as a table; a pair of partition key and id goes to one partition:\n
  asterism gremlin social people "g.V(['oslo', 'anna']).out('knows')"

With values for names in the text:\n
  asterism gremlin social people "g.V().has('age', gt(least))" --bindings '{"least": 30}'

Where the time and the request units go, step by step, and which partitions are touched:\n
  asterism gremlin social people "g.V('anna').out().values('name')" --profile

One JSON text per line, for programs:\n
  asterism gremlin social people "g.V().groupCount().by(label)" --json"""

Graph = Annotated[
    str, typer.Argument(metavar="GRAPH", help="Name of the graph, which is a container.", show_default=False)
]
Text = Annotated[str, typer.Argument(metavar="TRAVERSAL", help="g.V()…", show_default=False)]
Bindings = Annotated[
    str | None,
    typer.Option(
        "--bindings", "-b", metavar="JSON", help="Values for names in the text, as a JSON object.", show_default=False
    ),
]
Profile = Annotated[
    bool,
    typer.Option(
        "--profile",
        help="Run it with executionProfile(), writes included; show each step's store operations instead of results.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]

PROFILE_STEP = ".executionProfile()"
# Calls of a console that have no meaning here; a profile takes their place.
_LAST_CALL = re.compile(r"\.\s*(?:executionProfile|next|toList|iterate)\s*\(\s*\)\s*\Z", re.IGNORECASE)


def gremlin(
    database: options.Database,
    graph: Graph,
    text: Text,
    profile: Profile = False,
    bindings: Bindings = None,
    as_json: Json = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Run a traversal on a graph, and show its results and what it costs."""
    from asterism.cli.client import AdminClient
    from asterism.cli.graph_server import GraphServer

    values = read_bindings(bindings)
    admin = AdminClient(endpoint, key, insecure=insecure)
    server = GraphServer(admin, endpoint, key, insecure=insecure)
    reply = server.run(database, graph, with_profile(text) if profile else text, values)
    if as_json or output_format is options.Format.JSON:
        for result in reply.results:
            typer.echo(json.dumps(result, ensure_ascii=False))
        return
    if profile and reply.results and isinstance(reply.results[0], dict) and "metrics" in reply.results[0]:
        from asterism.cli.graph_profile import print_profile

        print_profile(reply.results[0])
    else:
        from asterism.cli.graph_results import print_elements

        print_elements(reply.results)
    count = len(reply.results)
    noun = "profile" if profile else f"{count:,} {'result' if count == 1 else 'results'}"
    # On standard error: a program that reads the output gets the results alone.
    typer.echo(f"{noun} · {reply.charge:,.2f} RU · {reply.milliseconds:,.1f} ms", err=True)


def read_bindings(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        values = json.loads(text)
    except ValueError as error:
        raise CommandFailed(f"the bindings are not JSON: {error}") from None
    if not isinstance(values, dict):
        raise CommandFailed('the bindings are no JSON object such as {"least": 30}')
    return values


def with_profile(text: str) -> str:
    """Return the text with the step that profiles it, in the place of the last call if that asks for results."""
    stripped = text.rstrip().rstrip(";").rstrip()
    return f"{_LAST_CALL.sub('', stripped)}{PROFILE_STEP}"
