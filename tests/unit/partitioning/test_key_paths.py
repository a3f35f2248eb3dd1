from __future__ import annotations

import pytest

from asterism.errors import MalformedRequest
from asterism.partitioning.key_path import check_key_path, parse_key_path


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/pk", ("pk",)),
        ("/address/zip_code", ("address", "zip_code")),
        ("/tenant-id", ("tenant-id",)),
        ('/"a b"/c', ("a b", "c")),
        ('/"level\' 1*()"/"le/vel2"', ("level' 1*()", "le/vel2")),
        ("/'level\" 1*()'/'le/vel2'", ('level" 1*()', "le/vel2")),
        (r'/"a\"b"', ('a"b',)),
        ("/größe", ("größe",)),
    ],
)
def test_a_path_is_read_as_the_clients_read_it(path: str, names: tuple[str, ...]) -> None:
    assert parse_key_path(path) == names
    check_key_path(path)


@pytest.mark.parametrize("path", ["", "pk", "/", "//", "/a/", "/a//b", '/"a', '/"a"b', '/""', " /a"])
def test_a_path_that_names_nothing_is_refused_with_the_path_in_the_reason(path: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        parse_key_path(path)
    assert repr(path) in refused.value.reason


@pytest.mark.parametrize(
    ("path", "shown", "position"),
    [
        ("/id ds", r"\/id ds", 3),
        ("/a/*", r"\/a\/*", 3),
        ("/*", r"\/*", 1),
        ("/a/?", r"\/a\/?", 3),
        ("/a/", r"\/a\/", 3),
        ("/", r"\/", 1),
        ("//Document/MyId", r"\/\/Document\/MyId", 1),
        ("pk", "pk", 0),
        ("", "", 0),
        ("/a.b", r"\/a.b", 2),
        ("/a+b", r"\/a+b", 2),
        ("/a[]", r"\/a[]", 2),
        ('/"a', r"\/\"a", 1),
        ('/"a"b', r"\/\"a\"b", 4),
        ('/""', r"\/\"\"", 2),
    ],
)
def test_a_new_container_s_path_is_refused_with_the_service_s_sentence(path: str, shown: str, position: int) -> None:
    with pytest.raises(MalformedRequest) as refused:
        check_key_path(path)
    assert refused.value.reason == (
        f'Message: {{"Errors":["The partition key component definition path \'{shown}\' could not be accepted, failed '
        f"near position '{position}'. Partition key paths must contain only valid characters and not contain a "
        'trailing slash or wildcard character."]}'
    )
