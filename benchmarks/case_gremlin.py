"""The Gremlin door beside the NoSQL door and Gremlin Server: a graph of 100,000 vertices and a million edges.

Every vertex has ten edges to others, spread over 1,000 partition keys and four physical partitions; the server is on
one core. Texts have their values in bindings, as users of the service write them.
"""

from __future__ import annotations

import csv
import itertools
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.gremlin_wire import GremlinTalker, run_gremlin_load, script
from benchmarks.load import run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_gremlin import running_gremlin_server
from benchmarks.processes import NotMeasured, RunningServer, free_port, fresh_folder, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import ACCOUNT_KEY, Caller, UnexpectedAnswer, request_head, signed_headers
from benchmarks.workload import DATABASE, Creates, container_link, create_container, create_database

CASE = "gremlin"
CONNECTIONS = 8
ROUNDS = 3
ROUND_SECONDS = 2.0
WARM_UP_SECONDS = 0.5

VERTICES = 100_000
DEGREE = 10
KEYS = 1_000
PARTITIONS_RU_PER_SECOND = 24_000
GRAPH, INDEXED_GRAPH, ITEMS = "graph", "indexed", "items"
# The graph with incoming edges is smaller: the setting changes the cost of a vertex, not that of the size.
INDEXED_VERTICES = 10_000
PEER_VERTICES = 20_000

POINT_READ_TO_NOSQL_AT_LEAST = 0.35
POINT_READ_TO_PEER_AT_LEAST = 0.5
TWO_HOPS_PER_SECOND_AT_LEAST = 600.0
TWO_HOPS_STORE_CALLS_AT_MOST = 25.0
IN_TO_OUT_AT_MOST = 1.5
ADD_VERTEX_TO_CREATE_AT_LEAST = 0.8
LOADED_PER_SECOND_AT_LEAST = 8_000.0
NEW_TEXT_MICROSECONDS_AT_MOST = 300.0
KNOWN_TEXT_MICROSECONDS_AT_MOST = 30.0
TEN_STEPS = (
    "g.V(['p1','v1']).outE('knows').has('weight',gt(0.5)).inV().hasLabel('person').has('age',gte(21))"
    ".order().by('name').limit(10).values('name')"
)


def key_of(number: int) -> str:
    return f"p{number % KEYS}"


def neighbors(number: int, count: int) -> list[int]:
    """Return the ten vertices to which a vertex has edges: always the same, all over the graph."""
    chosen = random.Random(number)
    return [chosen.randrange(count) for _ in range(DEGREE)]


def write_files(folder: Path, count: int) -> tuple[Path, Path]:
    vertices, edges = folder / "vertices.csv", folder / "edges.csv"
    with vertices.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "pk", "name:String", "age:Int"])
        writer.writerows([f"v{n}", "person", key_of(n), f"Person {n}", n % 90] for n in range(count))
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "from", "to", "weight:Double"])
        writer.writerows(
            [f"e{n}-{place}", "knows", f"v{n}", f"v{target}", round((n % 100) / 100, 2)]
            for n in range(count)
            for place, target in enumerate(neighbors(n, count))
        )
    return vertices, edges


def import_graph(subject: Subject, server: RunningServer, graph: str, files: tuple[Path, Path]) -> float:
    """Load a graph with the command for it; return the seconds it took."""
    command = [*subject.command[:-1], "graphs", "import", DATABASE, graph, *map(str, files)]
    command += ["--endpoint", f"http://127.0.0.1:{server.port}", "--key", ACCOUNT_KEY]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=subject.environment)
    if done.returncode:
        raise UnexpectedAnswer(done.stderr.decode(errors="replace")[-300:])
    return time.perf_counter() - begun


# --- requests ---------------------------------------------------------------------------------------------------------


def numbers(count: int, seed: int) -> Iterator[int]:
    chosen = random.Random(seed)
    return itertools.cycle([chosen.randrange(count) for _ in range(2_000)])


def by_place(text: str, count: int) -> Iterator[bytes]:
    """Yield requests for a vertex that is named by its key and id."""
    made = [script(text, {"pk": key_of(n), "vid": f"v{n}"}) for n in itertools.islice(numbers(count, 7), 2_000)]
    return itertools.cycle(made)


def by_id(text: str, count: int) -> Iterator[bytes]:
    """Yield the same for a graph without partitions."""
    made = [script(text, {"vid": f"v{n}"}) for n in itertools.islice(numbers(count, 7), 2_000)]
    return itertools.cycle(made)


def added_vertices(prefix: str) -> Iterator[bytes]:
    """Yield additions of vertices that are, as documents, as large as the items of the NoSQL door beside them."""
    text = "g.addV('person').property('id',vid).property('pk',pk).property('name',name).property('text',text)"
    for number in itertools.count():
        name = f"{prefix}{number:08d}"
        yield script(text, {"vid": name, "pk": f"p-{name}", "name": name, "text": "x" * 780})


def point_reads() -> Iterator[bytes]:
    """Yield point reads of the same vertices through the NoSQL door."""
    requests = []
    for number in itertools.islice(numbers(VERTICES, 7), 2_000):
        link = f"{container_link(GRAPH)}/docs/v{number}"
        headers = signed_headers("GET", resource_type="docs", link=link)
        headers["x-ms-documentdb-partitionkey"] = f'["{key_of(number)}"]'
        requests.append(request_head("GET", f"/{link}/", headers))
    return itertools.cycle(requests)


# --- rates ------------------------------------------------------------------------------------------------------------


class Rates:
    """Rates of several kinds of requests, measured in turns."""

    def __init__(self, server: RunningServer, gremlin_port: int) -> None:
        self.server = server
        self.gremlin_port = gremlin_port
        self.found: dict[str, list[float]] = {}

    async def gremlin(self, name: str, graph: str, requests: Iterator[bytes]) -> None:
        link = f"/dbs/{DATABASE}/colls/{graph}"
        await self._take(name, self.gremlin_port, link, requests)

    async def peer(self, name: str, port: int, requests: Iterator[bytes]) -> None:
        await self._take(name, port, "", requests, path="/gremlin")

    async def _take(self, name: str, port: int, link: str, requests: Iterator[bytes], *, path: str = "/") -> None:
        for seconds in (WARM_UP_SECONDS, ROUND_SECONDS):
            load = await run_gremlin_load(port, link, requests, connections=CONNECTIONS, seconds=seconds, path=path)
        self.found.setdefault(name, []).append(load.rate_per_second)

    async def nosql(self, name: str, requests: Iterator[bytes]) -> None:
        result = await run_load(
            self.server.port, requests, connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
        )
        if result.error_count:
            raise UnexpectedAnswer(f"{name}: {dict(result.statuses)}")
        self.found.setdefault(name, []).append(result.rate_per_second)

    def rate(self, name: str) -> float:
        several = sorted(self.found[name])
        return several[len(several) // 2]


async def measure_rates(rates: Rates, peer: RunningServer | None) -> None:
    for number in range(ROUNDS):
        await rates.nosql("point read, NoSQL", point_reads())
        await rates.gremlin("V([pk,id])", GRAPH, by_place("g.V([pk,vid])", VERTICES))
        await rates.gremlin("V([pk,id]).out()", GRAPH, by_place("g.V([pk,vid]).out().values('name')", VERTICES))
        await rates.gremlin("two hops", GRAPH, by_place("g.V([pk,vid]).out().out().values('name')", VERTICES))
        out, incoming = "g.V([pk,vid]).out().values('name')", "g.V([pk,vid]).in().values('name')"
        await rates.gremlin("out(), indexed graph", INDEXED_GRAPH, by_place(out, INDEXED_VERTICES))
        await rates.gremlin("in(), indexed graph", INDEXED_GRAPH, by_place(incoming, INDEXED_VERTICES))
        await rates.nosql("create, NoSQL", Creates(ITEMS, prefix=f"c{number}").requests())
        await rates.gremlin("addV", ITEMS, added_vertices(f"a{number}"))
        if peer is not None:
            await rates.peer("V(id), Gremlin Server", peer.port, by_id("g.V(vid)", PEER_VERTICES))
            text = "g.V(vid).out().out().values('name')"
            await rates.peer("two hops, Gremlin Server", peer.port, by_id(text, PEER_VERTICES))


def shown(rates: Rates) -> list[Measurement]:
    at_least = {"two hops": TWO_HOPS_PER_SECOND_AT_LEAST}
    return [Measurement(CASE, name, rates.rate(name), "/s", at_least=at_least.get(name)) for name in rates.found]


def ratios(rates: Rates) -> list[Measurement]:
    def ratio(above: str, below: str) -> float:
        return rates.rate(above) / rates.rate(below)

    found = [
        Measurement(
            CASE,
            "V([pk,id]) to a NoSQL point read",
            ratio("V([pk,id])", "point read, NoSQL"),
            "x",
            at_least=POINT_READ_TO_NOSQL_AT_LEAST,
        ),
        Measurement(
            CASE,
            "time of in() to that of out(), incoming edges kept",
            ratio("out(), indexed graph", "in(), indexed graph"),
            "x",
            at_most=IN_TO_OUT_AT_MOST,
        ),
        Measurement(
            CASE,
            "addV to a NoSQL create",
            ratio("addV", "create, NoSQL"),
            "x",
            at_least=ADD_VERTEX_TO_CREATE_AT_LEAST,
        ),
    ]
    if "V(id), Gremlin Server" in rates.found:
        found.append(
            Measurement(
                CASE,
                "V([pk,id]) to Gremlin Server's V(id)",
                ratio("V([pk,id])", "V(id), Gremlin Server"),
                "x",
                at_least=POINT_READ_TO_PEER_AT_LEAST,
            )
        )
    return found


# --- single figures ---------------------------------------------------------------------------------------------------


async def store_calls(port: int) -> Measurement:
    """Count the calls of the store for two hops, from the profile."""
    talker = await GremlinTalker.connect(port, f"/dbs/{DATABASE}/colls/{GRAPH}")
    counts = []
    for number in itertools.islice(numbers(VERTICES, 9), 20):
        text = "g.V([pk,vid]).out().out().values('name').executionProfile()"
        (profile,), _ = await talker.ask(text, {"pk": key_of(number), "vid": f"v{number}"})
        counts.append(profile["storeCalls"])
    await talker.close()
    return Measurement(CASE, "store calls of two hops", max(counts), "", at_most=TWO_HOPS_STORE_CALLS_AT_MOST)


def compile_times() -> list[Measurement]:
    from asterism.languages.gremlin.evaluation import EvaluationOptions
    from asterism.languages.gremlin.plan.planner import Planner

    def microseconds(plan: Callable[[int], object], count: int) -> float:
        best = float("inf")
        for _ in range(5):
            begun = time.perf_counter()
            for number in range(count):
                plan(number)
            best = min(best, (time.perf_counter() - begun) / count * 1e6)
        return best

    options = EvaluationOptions("cosmos")
    planner = Planner()
    salts = itertools.count()
    new = microseconds(
        lambda _: planner.plan_of_text(TEN_STEPS.replace("v1", f"v{next(salts)}"), {}, options, "pk"), 500
    )
    known = microseconds(lambda _: planner.plan_of_text(TEN_STEPS, {}, options, "pk"), 5_000)
    return [
        Measurement(CASE, "parse and compile ten steps, new", new, "µs", at_most=NEW_TEXT_MICROSECONDS_AT_MOST),
        Measurement(CASE, "parse and compile ten steps, known", known, "µs", at_most=KNOWN_TEXT_MICROSECONDS_AT_MOST),
    ]


async def fill_peer(port: int) -> None:
    """Give Gremlin Server a graph of the same form, by scripts that loop inside of it."""
    talker = await GremlinTalker.connect(port, "", path="/gremlin")
    for first in range(0, PEER_VERTICES, 2_000):
        await talker.ask(
            "(low..<high).each{ graph.addVertex(T.label,'person',T.id,'v'+it,'name','Person '+it,'age',it % 90) }; 0",
            {"low": first, "high": first + 2_000},
        )
    for first in range(0, PEER_VERTICES, 500):
        ends = [neighbors(n, PEER_VERTICES) for n in range(first, first + 500)]
        text = (
            "ends.eachWithIndex{ several, at -> def v = graph.vertices('v'+(low+at)).next(); "
            "several.each{ v.addEdge('knows', graph.vertices('v'+it).next()) } }; 0"
        )
        await talker.ask(text, {"low": first, "ends": ends})
    await talker.close()


async def measure(subject: Subject) -> list[Measurement]:
    found = compile_times()
    with ExitStack() as stack:
        folder = stack.enter_context(fresh_folder())
        gremlin_port = free_port()
        options = ("--gremlin-port", str(gremlin_port))
        data = stack.enter_context(fresh_folder())
        server = stack.enter_context(running_asterism(subject, data, *options, apis="nosql,gremlin"))
        caller = Caller(server.port)
        await create_database(caller)
        for name, settings in ((GRAPH, {}), (INDEXED_GRAPH, {"incomingEdges": True}), (ITEMS, {})):
            ru_per_second = PARTITIONS_RU_PER_SECOND
            await create_container(caller, name, ru_per_second=ru_per_second, settings=settings)
        await caller.close()
        seconds = import_graph(subject, server, GRAPH, write_files(folder, VERTICES))
        elements = VERTICES * (1 + DEGREE)
        note = f"{elements:,} elements in {seconds:.0f} s"
        loaded = Measurement(
            CASE, "elements loaded", elements / seconds, "/s", at_least=LOADED_PER_SECOND_AT_LEAST, note=note
        )
        import_graph(subject, server, INDEXED_GRAPH, write_files(folder, INDEXED_VERTICES))
        peer = None
        if not subject.is_compared:
            try:
                peer = stack.enter_context(running_gremlin_server())
                await fill_peer(peer.port)
            except (NotMeasured, UnexpectedAnswer, OSError) as problem:
                found.append(not_measured(CASE, "Gremlin Server", str(problem)))
                peer = None
        rates = Rates(server, gremlin_port)
        await measure_rates(rates, peer)
        found += [loaded, await store_calls(gremlin_port), *shown(rates), *ratios(rates)]
    return found
