"""The doors of the process as a door sees them that is a client of the others, as the portal is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asterism.apis.door_spec import DoorSpec, Endpoint, Surroundings
    from asterism.apis.transports.doors import AnyDoor
    from asterism.apis.transports.http import Door


@dataclass(frozen=True, slots=True)
class ServedDoor:
    """A door that the process serves: its row, its settings and its addresses."""

    spec: DoorSpec[Any]
    settings: Any
    surroundings: Surroundings


@dataclass(slots=True)
class Peers:
    """All doors of the process. `doors` and `operator` are there from the moment when the last door is built."""

    served: tuple[ServedDoor, ...] = ()
    # Keys of the accounts that the configuration gives to doors, by the name of the account.
    configured_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    # By the name of the port.
    doors: Mapping[str, AnyDoor] = field(default_factory=dict)
    operator: Door | None = None

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """Return the addresses of all ports, by name."""
        return {name: place for door in self.served for name, place in door.surroundings.endpoints.items()}
