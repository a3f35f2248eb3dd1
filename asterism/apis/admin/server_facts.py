"""Facts of the server as a whole, for commands that have to explain what a user will see."""

from __future__ import annotations

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.values.json.text import dumps


async def show_server(services: AdminServices, _: Request) -> Response:
    mongo = services.mongo_endpoint
    answer = {
        "version": services.version,
        "account": services.account,
        "throttles": services.admission.is_enforced,
        "web_page": services.web_page,
        "mongodb": None if mongo is None else {"port": mongo.port, "is_encrypted": mongo.is_encrypted},
    }
    return Response(200, JSON_HEADERS, dumps(answer))
