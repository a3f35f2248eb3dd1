"""The properties of an account's table service: logging, metrics, and the rules of cross-origin requests."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any, Final, cast

from asterism.apis.table.resources.xml_text import (
    DECLARATION,
    children,
    invalid_document,
    invalid_value,
    leaf,
    local_name,
    node,
    read_document,
    text_of,
)
from asterism.values.json.text import dumps, loads_stored

# The service's limit.
CORS_RULES_MAX: Final = 5
RETENTION_DAYS: Final = range(1, 366)
_ROOT: Final = "StorageServiceProperties"
_METRICS: Final = ("HourMetrics", "MinuteMetrics")
_FLAGS_OF_LOGGING: Final = ("Delete", "Read", "Write")
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH", "TRACE", "CONNECT"})
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)

# A section of the document -> its content. Sections that a request leaves out stay as they are.
Properties = dict[str, Any]

_NO_RETENTION: Final = {"Enabled": False}
DEFAULTS: Final[Properties] = {
    "Logging": {"Version": "1.0", "Delete": False, "Read": False, "Write": False, "RetentionPolicy": _NO_RETENTION},
    "HourMetrics": {"Version": "1.0", "Enabled": False, "RetentionPolicy": _NO_RETENTION},
    "MinuteMetrics": {"Version": "1.0", "Enabled": False, "RetentionPolicy": _NO_RETENTION},
    "Cors": [],
}


def load_properties(stored: bytes | None) -> Properties:
    return {**DEFAULTS, **cast("Properties", loads_stored(stored))} if stored else dict(DEFAULTS)


def dump_properties(properties: Properties) -> bytes:
    return dumps(properties)


def read_properties(body: bytes) -> Properties:
    """Read the sections of a document."""
    root = read_document(body, _ROOT)
    properties: Properties = {}
    for section in root:
        name = local_name(section)
        if name == "Logging":
            properties[name] = _read_logging(section)
        elif name in _METRICS:
            properties[name] = _read_metrics(section)
        elif name == "Cors":
            properties[name] = _read_cors(section)
        else:
            raise invalid_document()
    return properties


def _read_logging(section: ElementTree.Element) -> Mapping[str, Any]:
    parts = children(section)
    flags = {name: _flag(parts, name) for name in _FLAGS_OF_LOGGING}
    return {"Version": text_of(parts.get("Version")) or "1.0", **flags, "RetentionPolicy": _read_retention(parts)}


def _read_metrics(section: ElementTree.Element) -> Mapping[str, Any]:
    parts = children(section)
    metrics: dict[str, Any] = {"Version": text_of(parts.get("Version")) or "1.0", "Enabled": _flag(parts, "Enabled")}
    if "IncludeAPIs" in parts:
        metrics["IncludeAPIs"] = _flag(parts, "IncludeAPIs")
    elif metrics["Enabled"]:
        raise invalid_document("Enabled metrics need the element IncludeAPIs.")
    return {**metrics, "RetentionPolicy": _read_retention(parts)}


def _read_retention(parts: Mapping[str, ElementTree.Element]) -> Mapping[str, Any]:
    policy = children(parts["RetentionPolicy"]) if "RetentionPolicy" in parts else {}
    if not policy or not _flag(policy, "Enabled"):
        return _NO_RETENTION
    days = text_of(policy.get("Days"))
    if not _WHOLE.fullmatch(days) or int(days) not in RETENTION_DAYS:
        raise invalid_value("Days")
    return {"Enabled": True, "Days": int(days)}


def _flag(parts: Mapping[str, ElementTree.Element], name: str) -> bool:
    text = text_of(parts.get(name)).lower()
    if text not in ("true", "false"):
        raise invalid_value(name)
    return text == "true"


def _read_cors(section: ElementTree.Element) -> list[Mapping[str, Any]]:
    if len(section) > CORS_RULES_MAX:
        raise invalid_document("There are at most five rules of cross-origin requests.")
    return [_read_rule(children(rule)) for rule in section]


def _read_rule(parts: Mapping[str, ElementTree.Element]) -> Mapping[str, Any]:
    origins, methods = _list(parts, "AllowedOrigins"), _list(parts, "AllowedMethods")
    if not origins or not methods or not _METHODS.issuperset(methods):
        raise invalid_value("CorsRule")
    age = text_of(parts.get("MaxAgeInSeconds")) or "0"
    if not _WHOLE.fullmatch(age):
        raise invalid_value("MaxAgeInSeconds")
    return {
        "AllowedOrigins": origins,
        "AllowedMethods": methods,
        # Both may be empty.
        "AllowedHeaders": _list(parts, "AllowedHeaders"),
        "ExposedHeaders": _list(parts, "ExposedHeaders"),
        "MaxAgeInSeconds": int(age),
    }


def _list(parts: Mapping[str, ElementTree.Element], name: str) -> list[str]:
    return [entry.strip() for entry in text_of(parts.get(name)).split(",") if entry.strip()]


def write_properties(properties: Properties) -> bytes:
    sections = [_write_section(name, properties[name]) for name in ("Logging", *_METRICS)]
    rules = "".join(node("CorsRule", "".join(_write_rule_parts(rule))) for rule in properties["Cors"])
    return f"{DECLARATION}{node(_ROOT, ''.join(sections) + node('Cors', rules))}".encode()


def _write_section(name: str, section: Mapping[str, Any]) -> str:
    parts = [leaf(part, value) for part, value in section.items() if part != "RetentionPolicy"]
    retention = "".join(leaf(part, value) for part, value in section["RetentionPolicy"].items())
    return node(name, "".join(parts) + node("RetentionPolicy", retention))


def _write_rule_parts(rule: Mapping[str, Any]) -> list[str]:
    return [leaf(name, ",".join(value) if isinstance(value, list) else value) for name, value in rule.items()]
