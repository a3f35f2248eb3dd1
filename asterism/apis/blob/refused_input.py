"""The error of the codecs of this door: input that the service refuses, with the code it has for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from asterism.errors import AsterismError, Category


@dataclass(eq=False)
class RefusedInput(AsterismError):
    """`code` and `status` are the service's; `reason` is a sentence for the caller."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The input is refused."
    status: int
    code: str
    reason: str


def invalid_document(reason: str = "XML specified is not syntactically valid.") -> RefusedInput:
    return RefusedInput(400, "InvalidXmlDocument", reason)
