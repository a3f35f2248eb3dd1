"""One request on its way through the pipeline, and its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from asterism.apis.gremlin.encoders import Encoder
from asterism.apis.gremlin.errors import Refusal
from asterism.apis.gremlin.login import Login
from asterism.apis.gremlin.requests import Request
from asterism.apis.gremlin.responses import ResponseWriter
from asterism.apis.pipeline import UNROUTED
from asterism.languages.gremlin.evaluation import Evaluation

# Sends a message that is not the last of its answer; waits while the client has too many unread.
Send = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Call:
    """A request, and the way in which its client wants to hear of it."""

    request: Request
    writer: ResponseWriter
    send: Send
    # Returns the login, or raises the reason against it; a request over HTTP is read here, too.
    admit: Callable[[Call], Awaitable[Login]]
    # Refuses in this form instead of the request's.
    error_encoder: Encoder | None = None
    # All results go into one message, up to so many bytes; None: into batches.
    whole_bytes_max: int | None = None
    login: Login | None = None
    operation: str = UNROUTED
    evaluation: Evaluation | None = None

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def charge(self) -> float:
        return 0.0 if self.evaluation is None else self.evaluation.charge


@dataclass(slots=True)
class Answer:
    """The last message of an answer, by the status of the protocol."""

    status: int
    message: bytes
    encoder: Encoder
    # Of an answer without results, with its text.
    refusal: Refusal | None = None
    refusal_text: str = ""
