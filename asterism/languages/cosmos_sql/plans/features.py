"""Features that a client must support to follow a plan, by the names that clients use for them."""

from __future__ import annotations

from collections.abc import Iterable

from asterism.errors import MalformedRequest


def check_features(needed: Iterable[str], supported: str | None) -> None:
    """Check that the client supports all features that a plan needs.

    `supported` is the client's own list, separated by commas; None skips the check. Raises MalformedRequest with the
    words of the service.
    """
    if supported is None:
        return
    known = {name.strip() for name in supported.split(",")}
    missing = [name for name in needed if name not in known]
    if missing:
        raise MalformedRequest(reason=unsupported_features_reason(missing))


def unsupported_features_reason(missing: Iterable[str]) -> str:
    sentences = [f"\r\n\tQuery contained {name}, which the calling client does not support." for name in missing]
    return (
        "Query contains 1 or more unsupported features. "
        "Upgrade your SDK to a version that does support the requested features:" + "".join(sentences)
    )
