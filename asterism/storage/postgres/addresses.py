"""The connection string of a node: `postgresql://user@one:5432,two:5432/name` names a server and its standbys.

Each host gets a connection string of its own, because each is tried with its own timeout: a host that drops packets
must not delay the attempt at the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from asterism.storage.contract import EngineFailed

SCHEMES = ("postgresql", "postgres")
# The engine finds the primary and the standbys itself.
OWN_PARAMETERS = {"target_session_attrs", "host", "port"}


def split_hosts(connection_string: str) -> tuple[str, ...]:
    """Return one connection string for each host of a node, in the order of the hosts."""
    parts = urlsplit(connection_string)
    if parts.scheme not in SCHEMES:
        raise EngineFailed("a node's connection string must begin with postgresql://")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = parameters.get("host", "").split(",") if parameters.get("host") else []
    ports = parameters.get("port", "").split(",") if parameters.get("port") else []
    rest = {name: value for name, value in parameters.items() if name not in OWN_PARAMETERS}
    user, at, named = parts.netloc.rpartition("@")
    locations: list[tuple[str, dict[str, str]]] = [(user + at + host, {}) for host in named.split(",")]
    if hosts:
        locations = [(user + at, {"host": host}) for host in hosts]
    return tuple(
        _join(parts.scheme, netloc, parts.path, rest | own | _port_of(ports, index))
        for index, (netloc, own) in enumerate(locations)
    )


def _join(scheme: str, netloc: str, path: str, parameters: Mapping[str, str]) -> str:
    # The standard library omits the slashes of a URL without a host.
    return f"{scheme}://{netloc}{path}" + (f"?{urlencode(parameters)}" if parameters else "")


def _port_of(ports: list[str], index: int) -> dict[str, str]:
    """Return the port of a host as libpq does: one port for all hosts, or one for each."""
    if not ports:
        return {}
    return {"port": ports[index] if index < len(ports) else ports[0]}


def without_password(connection_string: str) -> str:
    """Return the connection string in a form that may be shown."""
    parts = urlsplit(connection_string)
    user, at, hosts = parts.netloc.rpartition("@")
    netloc = user.partition(":")[0] + at + hosts
    parameters = {name: value for name, value in parse_qsl(parts.query) if name != "password"}
    return _join(parts.scheme, netloc, parts.path, parameters)
