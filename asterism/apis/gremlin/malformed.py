"""The refusals that only this door has."""

from __future__ import annotations


class MalformedMessage(Exception):
    """A message cannot be read. The sentence is for its sender, and says what was expected."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class ResultRefused(Exception):
    """A result cannot be sent: it is too large, or the format of the answer has no form for it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class OperationRefused(Exception):
    """A request for something that graphs do not have."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class InvalidCredentials(Exception):
    """The user is no graph of an account, or the password opens no account."""
