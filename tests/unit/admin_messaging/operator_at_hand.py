"""An operator of a server in this process, and short ways to say what is asked of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from tests.unit.server.test_admin_door import Operator

NAMESPACE = "asterism"
Json = dict[str, Any]


class MessagingOperator(Operator):
    """An operator whose requests are about a namespace."""

    async def read(self, route: str, **parameters: object) -> Json:
        """Return the answer of a route that succeeds."""
        return await self.get(f"messaging/{route}", urlencode({"namespace": NAMESPACE, **parameters}))

    async def post(self, route: str, **fields: object) -> Json:
        """Return the answer to a request that succeeds."""
        response = await self.ask("POST", f"messaging/{route}", body={"namespace": NAMESPACE, **fields})
        assert response.status in (200, 201), response.body
        answer: Json = json.loads(response.body)
        return answer

    async def refusal(self, route: str, **fields: object) -> tuple[int, str]:
        """Return status and message of a request that is refused."""
        response = await self.ask("POST", f"messaging/{route}", body={"namespace": NAMESPACE, **fields})
        return response.status, json.loads(response.body)["message"]

    async def texts(self, entity: str, **parameters: object) -> list[str]:
        """Return the bodies of the messages of an entity."""
        page = await self.read("messages", entity=entity, **parameters)
        return [message["body"]["text"] for message in page["messages"]]

    async def fill(self, entity: str, *texts: str, **fields: object) -> list[int]:
        """Send messages; return their sequence numbers."""
        sent = await self.post("send", entity=entity, messages=[{"body": text, **fields} for text in texts])
        numbers: list[int] = sent["sequence_numbers"]
        return numbers

    async def dead_letter(self, entity: str, *texts: str, reason: str = "broken", **fields: object) -> None:
        """Send messages and make dead letters of them."""
        await self.fill(entity, *texts, **fields)
        taken = await self.post("receive", entity=entity, count=len(texts))
        tokens = [message["lock_token"] for message in taken["messages"]]
        settled = await self.post(
            "settle", entity=entity, action="dead-letter", lock_tokens=tokens, reason=reason, description="no such part"
        )
        assert settled == {"settled": len(texts), "failed": []}


@asynccontextmanager
async def operator_at_hand(directory: Path) -> AsyncIterator[MessagingOperator]:
    async with assembled(ServerConfig(), DataDirectory(directory)) as assembly:
        yield MessagingOperator(assembly)
