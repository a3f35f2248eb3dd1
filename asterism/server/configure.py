"""From the options of `asterism serve` to a configuration of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from asterism.apis.door_spec import DoorSpec
from asterism.apis.settings import WHERE, Option, given_settings, options_of
from asterism.server.config import ConfiguredDoor, ServerConfig, StartRefused
from asterism.server.doors import DOORS
from asterism.server.limit_options import all_limits, read_limits


def serve_options(doors: Sequence[DoorSpec[Any]] = DOORS) -> list[Option]:
    """Return all options, in the order of the help: those of doors where `ServerConfig` has its doors."""
    of_server = options_of(ServerConfig)
    shapes = ", ".join(door.seed.shape for door in doors if door.seed is not None)
    for field, more_help in (("limits", f"Names: {', '.join(all_limits(doors))}."), ("seed", f"{{{shapes}}}.")):
        of_server[field] = replace(of_server[field], help=f"{of_server[field].help} {more_help}")
    options: list[Option] = []
    for declared in fields(ServerConfig):
        if declared.name == "doors":
            # An option that several doors share stands where the first of them has it.
            of_doors = {option.flag: option for door in doors for option in door.options}
            options += [_apis_option(doors), *of_doors.values()]
        else:
            options.append(of_server[declared.name])
    return options


def configured(values: Mapping[str, Any], doors: Sequence[DoorSpec[Any]] = DOORS) -> ServerConfig:
    """Return the configuration that the values of options say; what is not among them has its default."""
    served = parse_apis(values.get("apis", _apis_option(doors).default), doors)
    limits = read_limits(values.get("limit") or (), doors)
    settings = given_settings(ServerConfig, values) | {
        "limits": limits.limits,
        "doors": tuple(
            _configured_door(door, values, limits.of_doors[door.name], is_served=door.name in served) for door in doors
        ),
    }
    return _with_fleet(ServerConfig(**settings))


def parse_apis(given: str, doors: Sequence[DoorSpec[Any]] = DOORS) -> tuple[str, ...]:
    """Return the protocols in a text such as `nosql,table`, in the order of the doors."""
    known = [door.name for door in doors]
    names = {name.strip().lower() for name in given.split(",") if name.strip()}
    unknown = sorted(names.difference(known))
    if unknown or not names:
        problem = f"there is no protocol {unknown[0]!r}" if unknown else "no protocol is chosen"
        raise StartRefused(f"{problem}; the protocols are {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _apis_option(doors: Sequence[DoorSpec[Any]]) -> Option:
    names = [door.name for door in doors]
    help = f"The protocols to serve, with commas between: {', '.join(names)}."
    return Option("--apis", kind=str, default=",".join(names), help=help, panel=WHERE, metavar="NAMES")


def _configured_door(
    spec: DoorSpec[Any], values: Mapping[str, Any], limits: Mapping[str, int], *, is_served: bool
) -> ConfiguredDoor:
    settings = spec.settings(**given_settings(spec.settings, values), **limits)
    ports = {port.name: int(values.get(port.option.name, port.default)) for port in spec.ports}
    return ConfiguredDoor(spec, settings, ports, is_served and not spec.is_off(settings))


def _with_fleet(config: ServerConfig) -> ServerConfig:
    if config.fleet_file is None:
        return config
    if config.fleet is not None:
        raise StartRefused("give either --fleet or --store")
    from asterism.server.fleet.config import read_fleet

    return replace(config, fleet=read_fleet(config.fleet_file))
