"""The readiness probe."""

from __future__ import annotations

from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.http import Request, Response
from asterism.values.json_text import dumps


async def show_health(console: Console, _: Request) -> Response:
    """Answered only while the doors are open, so to be answered at all is to be ready."""
    return Response(200, JSON_HEADERS, dumps({"status": "ready", "version": console.version}))
