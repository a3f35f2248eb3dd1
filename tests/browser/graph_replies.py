"""Replies of the Gremlin door in the service's form, for pages whose drawing needs no graph in the store."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page, Route


def vertex(number: int, label: str = "person", key: str = "p", **properties: Any) -> dict[str, Any]:
    values = {"pk": key, "name": f"name {number}", **properties}
    return {
        "id": f"v{number}",
        "label": label,
        "type": "vertex",
        "properties": {name: [{"id": f"v{number}|{name}", "value": value}] for name, value in values.items()},
    }


def edge(number: int, source: int, target: int, **properties: Any) -> dict[str, Any]:
    return {
        "id": f"e{number}",
        "label": "knows",
        "type": "edge",
        "inVLabel": "person",
        "outVLabel": "person",
        "inV": f"v{target}",
        "outV": f"v{source}",
        **({"properties": properties} if properties else {}),
    }


def reply(results: list[Any], *, charge: float = 3.5) -> dict[str, Any]:
    attributes = {
        "x-ms-status-code": 200,
        "x-ms-request-charge": charge,
        "x-ms-total-request-charge": charge,
        "x-ms-server-time-ms": 1.5,
        "x-ms-total-server-time-ms": 1.5,
    }
    status = {"code": 200, "message": "", "attributes": attributes}
    return {"requestId": "r", "status": status, "result": {"data": results, "meta": {}}}


def refusal(sentence: str, *, code: int = 597, status: int = 1000, **attributes: Any) -> dict[str, Any]:
    message = (
        "\r\n\nActivityId : a\nExceptionType : GraphRuntimeException\nExceptionMessage : \r\n\t"
        f"{sentence}\n\tGremlinRequestId : r\n\tContext : graphcompute\n"
    )
    attributes_of_status = {"x-ms-status-code": status, **attributes}
    return {
        "requestId": "r",
        "status": {"code": code, "message": message, "attributes": attributes_of_status},
        "result": {"data": [], "meta": {}},
    }


class FakeDoor:
    """The Gremlin door as a page sees it: answers texts with canned replies, and keeps the texts."""

    def __init__(self, page: Page) -> None:
        self.texts: list[str] = []
        self.replies: list[dict[str, Any]] = []
        page.route("**/api/*/gremlin/**", self._answer)

    def _answer(self, route: Route) -> None:
        self.texts.append(json.loads(route.request.post_data or "{}")["gremlin"])
        content = self.replies.pop(0)
        is_refused = content["status"]["code"] >= 400
        route.fulfill(status=400 if is_refused else 200, content_type="application/json", body=json.dumps(content))
