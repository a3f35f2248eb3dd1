from __future__ import annotations

import pytest

from asterism.errors import MalformedRequest
from asterism.partitioning.key_path import parse_key_path


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


@pytest.mark.parametrize("path", ["", "pk", "/", "//", "/a/", "/a//b", '/"a', '/"a"b', '/""', " /a"])
def test_a_path_that_names_nothing_is_refused_with_the_path_in_the_reason(path: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        parse_key_path(path)
    assert repr(path) in refused.value.reason
