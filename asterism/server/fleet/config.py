"""A fleet as its operator describes it: nodes, their labels, where the catalog is, and rules of placement.

[fleet]
name = "shop"
catalog = "a"                    # the first node by default

[[node]]
name = "a"
dsn = "postgresql://db1,db1b/shop?target_session_attrs=read-write"
labels = ["ssd"]
regions = ["westeurope"]         # a region is a label by another name

[placement]
spread = true                    # for every container without a rule of its own

[[placement.rule]]
containers = "shop/*"            # DATABASE/CONTAINER, with * and ?
regions = ["westeurope"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from asterism.keyspaces.catalog.nodes import EMBEDDED_NAME
from asterism.partitioning.placement import NO_RULES, Rules
from asterism.server.config import StartRefused
from asterism.server.store_address import check_address, without_password

FLEET_WITHOUT_NAME = "fleet"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    name: str
    dsn: str
    labels: frozenset[str] = frozenset()

    @property
    def shown(self) -> str:
        """The address without its password."""
        return without_password(self.dsn)


@dataclass(frozen=True, slots=True)
class ContainerRule:
    containers: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class FleetConfig:
    nodes: tuple[NodeConfig, ...]
    catalog: str
    name: str = FLEET_WITHOUT_NAME
    default_rules: Rules = NO_RULES
    container_rules: tuple[ContainerRule, ...] = ()

    def rules_for(self, database: str, container: str) -> Rules:
        """Return the first rule that fits the names, or the default."""
        for rule in self.container_rules:
            if fnmatchcase(f"{database}/{container}", rule.containers):
                return rule.rules
        return self.default_rules

    def union(self, other: FleetConfig) -> FleetConfig:
        """Return both fleets' nodes, for a migration from this one to the other; the other's rules count already."""
        names = {node.name for node in other.nodes}
        own = tuple(node for node in self.nodes if node.name not in names)
        return replace(other, nodes=(*own, *other.nodes), catalog=self.catalog)

    def to_json(self) -> dict[str, Any]:
        return {
            "fleet": {"name": self.name, "catalog": self.catalog},
            "node": [{"name": node.name, "dsn": node.dsn, "labels": sorted(node.labels)} for node in self.nodes],
            "placement": {
                **self.default_rules.to_json(),
                "rule": [{"containers": rule.containers, **rule.rules.to_json()} for rule in self.container_rules],
            },
        }


def read_fleet(path: Path) -> FleetConfig:
    """Read the fleet of a file; directories in it are relative to that of the file."""
    try:
        description = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StartRefused(f"the fleet file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartRefused(f"the fleet file {path} is not TOML: {error}") from None
    try:
        fleet = parse_fleet(description, directory=path.resolve().parent)
        if EMBEDDED_NAME in {node.name for node in fleet.nodes}:
            raise StartRefused(f"the name {EMBEDDED_NAME!r} is that of a store in a data directory; choose another")
    except StartRefused as refusal:
        raise StartRefused(f"the fleet file {path}: {refusal}") from None
    return fleet


def parse_fleet(description: Mapping[str, Any], *, directory: Path) -> FleetConfig:
    _check_names(description, {"fleet", "node", "placement"}, "the file")
    fleet = _table(description, "fleet")
    _check_names(fleet, {"name", "catalog"}, "[fleet]")
    nodes = tuple(
        _parse_node(table, place, directory) for place, table in enumerate(_tables(description, "node"), start=1)
    )
    if not nodes:
        raise StartRefused("there is no [[node]]")
    names = [node.name for node in nodes]
    for name in names:
        if names.count(name) > 1:
            raise StartRefused(f"two nodes have the name {name!r}")
    catalog = _text(fleet, "catalog", "[fleet]") if "catalog" in fleet else names[0]
    if catalog not in names:
        raise StartRefused(f"the catalog is on {catalog!r}, which is not a node; the nodes are {', '.join(names)}")
    placement = _table(description, "placement")
    _check_names(placement, {"labels", "regions", "spread", "rule"}, "[placement]")
    return FleetConfig(
        nodes=nodes,
        catalog=catalog,
        name=_text(fleet, "name", "[fleet]") if "name" in fleet else FLEET_WITHOUT_NAME,
        default_rules=_parse_rules(placement, "[placement]"),
        container_rules=tuple(_parse_container_rule(rule) for rule in _tables(placement, "rule")),
    )


def fleet_of_stores(urls: Sequence[str]) -> FleetConfig:
    """Return the fleet that `--store URL`, once or more, describes: node1 with the catalog, node2 and so on."""
    nodes = [NodeConfig(f"node{place}", check_address(url, Path.cwd())) for place, url in enumerate(urls, start=1)]
    return FleetConfig(nodes=tuple(nodes), catalog=nodes[0].name)


def _parse_node(table: Mapping[str, Any], place: int, directory: Path) -> NodeConfig:
    where = f"node {place}"
    _check_names(table, {"name", "dsn", "labels", "regions"}, where)
    name = _text(table, "name", where)
    if name.isdigit() or not name.isprintable() or "/" in name:
        raise StartRefused(f"{where} has the name {name!r}; a name has a letter and no slash")
    try:
        dsn = check_address(_text(table, "dsn", where), directory)
    except StartRefused as refusal:
        raise StartRefused(f"{where}: {refusal}") from None
    return NodeConfig(name, dsn, _labels(table, where))


def _parse_container_rule(table: Mapping[str, Any]) -> ContainerRule:
    where = "[[placement.rule]]"
    _check_names(table, {"containers", "labels", "regions", "spread"}, where)
    containers = _text(table, "containers", where)
    if containers.count("/") != 1:
        raise StartRefused(f"{where} is for {containers!r}; write DATABASE/CONTAINER, * for any")
    return ContainerRule(containers, _parse_rules(table, where))


def _parse_rules(table: Mapping[str, Any], where: str) -> Rules:
    spread = table.get("spread", False)
    if not isinstance(spread, bool):
        raise StartRefused(f"{where}: spread must be true or false")
    return Rules(_labels(table, where), spread)


def _labels(table: Mapping[str, Any], where: str) -> frozenset[str]:
    labels: set[str] = set()
    for name in ("labels", "regions"):
        given = table.get(name, [])
        if not isinstance(given, list) or not all(isinstance(label, str) and label for label in given):
            raise StartRefused(f"{where}: {name} must be a list of words")
        labels.update(given)
    return frozenset(labels)


def _text(table: Mapping[str, Any], name: str, where: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not value:
        raise StartRefused(f"{where} has no {name}")
    return value


def _table(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name, {})
    if not isinstance(value, dict):
        raise StartRefused(f"{name} must be a table, [{name}]")
    return value


def _tables(parent: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = parent.get(name, [])
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise StartRefused(f"{name} must be a list of tables, [[{name}]]")
    return value


def _check_names(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise StartRefused(f"{where} has {unknown[0]!r}; known are {', '.join(sorted(known))}")
