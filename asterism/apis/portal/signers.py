"""Headers that sign a request to another door of the process, as its clients do."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from urllib.parse import quote

from asterism.access.master_key import signature
from asterism.access.shared_key import shared_key_signature, wire_forms

# key, verb, decoded path with its leading slash, date
Signer = Callable[[bytes, str, str, str], Mapping[str, str]]


def sign_documents(key: bytes, verb: str, path: str, date: str) -> Mapping[str, str]:
    """Sign for the NoSQL door: the link is the path of a resource, or that of the owner of a feed."""
    parts = path.strip("/").split("/") if path.strip("/") else []
    resource_type = parts[-2] if parts and len(parts) % 2 == 0 else parts[-1] if parts else ""
    if len(parts) % 2:
        link = "/".join(parts[:-1])
    elif parts and parts[0] == "offers":
        link = parts[-1].lower()
    else:
        link = "/".join(parts)
    return _master_token(key, verb=verb, resource_type=resource_type, link=link, date=date)


def sign_operator(key: bytes, verb: str, path: str, date: str) -> Mapping[str, str]:
    """Sign for the operator's door, where the link is the whole path."""
    return _master_token(key, verb=verb, resource_type="asterism", link=path.strip("/"), date=date)


def sign_entities(key: bytes, verb: str, path: str, date: str) -> Mapping[str, str]:  # noqa: ARG001
    """Sign for the Table door, in the short form, which covers date and path."""
    account = path.lstrip("/").partition("/")[0]
    signed = shared_key_signature(key, f"{date}\n/{account}{next(iter(wire_forms(path)))}")
    return {"authorization": f"SharedKeyLite {account}:{signed}", "x-ms-date": date}


def sign_traversals(key: bytes, verb: str, path: str, date: str) -> Mapping[str, str]:  # noqa: ARG001
    """Sign for the Gremlin door, where the user of a login is the path of the graph, and its password the key."""
    # Escaped, because a colon ends the user of such credentials.
    user = "/".join(quote(name, safe="") for name in path.split("/"))
    credentials = f"{user}:{base64.b64encode(key).decode('ascii')}"
    return {"authorization": f"Basic {base64.b64encode(credentials.encode()).decode('ascii')}"}


def _master_token(key: bytes, *, verb: str, resource_type: str, link: str, date: str) -> Mapping[str, str]:
    signed = signature(key, verb=verb, resource_type=resource_type, link=link, date=date)
    return {"authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""), "x-ms-date": date}
