"""Facts of the server as a whole, for commands that have to explain what a user will see."""

from __future__ import annotations

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.services import AdminServices
from asterism.apis.door_spec import Endpoint
from asterism.apis.transports.http import Request, Response
from asterism.values.json.text import dumps


async def show_server(services: AdminServices, _: Request) -> Response:
    answer = {
        "version": services.version,
        "account": services.account,
        "throttles": services.admission.is_enforced,
        "web_page": services.web_page,
        "mongodb": _place(services.mongo_endpoint),
        "gremlin": _place(services.gremlin_endpoint),
        "storage": {service: _place(endpoint) for service, endpoint in services.storage_endpoints.items()},
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _place(endpoint: Endpoint | None) -> dict[str, object] | None:
    """Return what a command needs to reach a port on the host that it knows."""
    return None if endpoint is None else {"port": endpoint.port, "is_encrypted": endpoint.is_encrypted}
