"""Tokens with a place to read at."""

from __future__ import annotations

from asterism.languages.blob_sql.errors import MalformedBlobQuery
from asterism.languages.blob_sql.lexer import Token


class TokenStream:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def all_tokens(self) -> list[Token]:
        return self._tokens

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def accept(self, keyword: str) -> bool:
        if self.peek().keyword == keyword:
            self.take()
            return True
        return False

    def accept_sign(self, sign: str) -> bool:
        token = self.peek()
        if token.kind == "sign" and token.text == sign:
            self.take()
            return True
        return False

    def expect(self, keyword: str) -> None:
        if not self.accept(keyword):
            raise MalformedBlobQuery(f"{keyword} was expected.", self.peek().position)

    def expect_sign(self, sign: str) -> None:
        if not self.accept_sign(sign):
            raise MalformedBlobQuery(f"The sign {sign} was expected.", self.peek().position)

    def expect_end(self) -> None:
        if self.peek().kind != "end":
            raise MalformedBlobQuery("The query before this text is complete.", self.peek().position)

    def name(self) -> str:
        token = self.take()
        if token.kind not in ("word", "name"):
            raise MalformedBlobQuery("A name was expected.", token.position)
        return token.text


def whole_number(tokens: TokenStream) -> int:
    token = tokens.take()
    # Eighteen digits fit into 63 bits.
    if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 18:
        raise MalformedBlobQuery("A whole number was expected.", token.position)
    return int(token.text)
