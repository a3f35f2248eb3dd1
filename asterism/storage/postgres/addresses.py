"""The connection string of a node: `postgresql://user@one:5432,two:5432/name` names a server and its standbys.

Each host gets a connection string of its own, because each is to be tried with a time of its own: a host that swallows
packets must not keep us from the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from asterism.storage.contract import EngineFailed

SCHEMES = ("postgresql", "postgres")
# We look for the primary and the standbys ourselves.
OWN_PARAMETERS = {"target_session_attrs", "host", "port"}


def split_hosts(connection_string: str) -> tuple[str, ...]:
    """One connection string for each host of a node's, in the order they are named."""
    parts = urlsplit(connection_string)
    if parts.scheme not in SCHEMES:
        raise EngineFailed("a node's connection string begins with postgresql://")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = parameters.get("host", "").split(",") if parameters.get("host") else []
    ports = parameters.get("port", "").split(",") if parameters.get("port") else []
    rest = {name: value for name, value in parameters.items() if name not in OWN_PARAMETERS}
    user, at, named = parts.netloc.rpartition("@")
    places: list[tuple[str, dict[str, str]]] = [(user + at + host, {}) for host in named.split(",")]
    if hosts:
        places = [(user + at, {"host": host}) for host in hosts]
    return tuple(
        _join(parts.scheme, netloc, parts.path, rest | own | _one_port(ports, place))
        for place, (netloc, own) in enumerate(places)
    )


def _join(scheme: str, netloc: str, path: str, parameters: Mapping[str, str]) -> str:
    # The standard library leaves out the slashes of an address without a host.
    return f"{scheme}://{netloc}{path}" + (f"?{urlencode(parameters)}" if parameters else "")


def _one_port(ports: list[str], place: int) -> dict[str, str]:
    """As libpq has it: one port for all hosts, or one for each."""
    if not ports:
        return {}
    return {"port": ports[place] if place < len(ports) else ports[0]}


def without_password(connection_string: str) -> str:
    """The connection string as it may be shown."""
    parts = urlsplit(connection_string)
    user, at, hosts = parts.netloc.rpartition("@")
    netloc = user.partition(":")[0] + at + hosts
    parameters = {name: value for name, value in parse_qsl(parts.query) if name != "password"}
    return _join(parts.scheme, netloc, parts.path, parameters)
