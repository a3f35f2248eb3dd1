"""An engine that fails where a test says so: before a call has its effect, or after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from asterism.storage.contract import Engine, EngineFailed

# Given the call, which it may make or not, and the call's arguments.
Script = Callable[..., Awaitable[Any]]


class ScriptedEngine:
    """Hands calls on to an engine; one that has a script is handed to the script."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.scripts: dict[str, Script] = {}

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._engine, name)
        script = self.scripts.get(name)
        if script is None:
            return call

        def scripted(*arguments: Any, **named: Any) -> Awaitable[Any]:
            return script(lambda: call(*arguments, **named), *arguments)

        return scripted

    def lose_answer(self, name: str, *, of: Callable[..., bool]) -> asyncio.Event:
        """Have the first call that `of` chooses by its arguments fail after its effect; the event is set then."""
        is_lost = asyncio.Event()

        async def script(call: Callable[[], Awaitable[Any]], *arguments: Any) -> Any:
            answer = await call()
            if of(*arguments):
                del self.scripts[name]
                is_lost.set()
                raise EngineFailed("the answer was lost")
            return answer

        self.scripts[name] = script
        return is_lost

    def fail_once(self, name: str, *, of: Callable[..., bool] = lambda *_: True) -> None:
        """Have the first call that `of` chooses by its arguments fail without an effect."""

        async def script(call: Callable[[], Awaitable[Any]], *arguments: Any) -> Any:
            if of(*arguments):
                del self.scripts[name]
                raise EngineFailed("the node cannot be reached")
            return await call()

        self.scripts[name] = script

    def as_engine(self) -> Engine:
        return cast(Engine, self)
