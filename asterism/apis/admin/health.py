"""The readiness probe."""

from __future__ import annotations

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.values.json.text import dumps


async def show_health(services: AdminServices, _: Request) -> Response:
    """Answered only while the doors are open, so to be answered at all is to be ready."""
    return Response(200, JSON_HEADERS, dumps({"status": "ready", "version": services.version}))
