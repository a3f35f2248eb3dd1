"""The transports of ports, and the doors that can stand behind them."""

from __future__ import annotations

from typing import Literal

from asterism.apis.transports.http import Door
from asterism.apis.transports.tcp import TcpDoor
from asterism.apis.transports.websocket import WebSocketDoor

# The methods that a port calls on its door: `answer` for http, `serve_websocket` for websocket, `serve` for tcp. A port
# of several looks at the first bytes of a connection.
Transport = Literal["http", "http+websocket", "tcp", "tcp+http+websocket"]
AnyDoor = Door | WebSocketDoor | TcpDoor
