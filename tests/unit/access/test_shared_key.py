"""Signatures of the account's key over requests for tables."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.shared_key import check_shared_key, is_shared_key, shared_key_signature, signed_account, wire_forms

KEY = b"a key of an account"
DATE = "Mon, 16 Nov 2026 01:33:51 GMT"


def check(authorization: str, *, path: str, verb: str = "GET", comp: str | None = None, key: bytes = KEY) -> bool:
    return check_shared_key(
        (key,),
        authorization=authorization,
        verb=verb,
        content_md5="",
        content_type="",
        date=DATE,
        account="acct",
        paths=(path,),
        comp=comp,
    )


def signed(wire_path: str, *, verb: str = "GET", comp: str = "", key: bytes = KEY) -> str:
    return "SharedKey acct:" + shared_key_signature(key, f"{verb}\n\n\n{DATE}\n/acct{wire_path}{comp}")


# Paths on the wire for the PartitionKey p'k é+ : Python's client, its asyncio client, JavaScript's.
WIRE_PATHS = [
    "/acct/t(PartitionKey='p%27%27k%20%C3%A9%2B',RowKey='r')",
    "/acct/t(PartitionKey='p''k%20%C3%A9%2B',RowKey='r')",
    "/acct/t(PartitionKey='p''k%20%C3%A9+',RowKey='r')",
    "/acct/t(PartitionKey=%27p%27%27k%20%C3%A9%2B%27,RowKey=%27r%27)",
]


@pytest.mark.parametrize("wire_path", WIRE_PATHS)
def test_a_path_is_recognized_as_each_client_encodes_it(wire_path: str) -> None:
    assert check(signed(wire_path), path=unquote(wire_path))


def test_the_lite_form_signs_date_and_path_only() -> None:
    authorization = "SharedKeyLite acct:" + shared_key_signature(KEY, f"{DATE}\n/acct/acct/t()")
    assert is_shared_key(authorization)
    assert check(authorization, path="/acct/t()")


def test_comp_is_part_of_the_signed_text() -> None:
    assert check(signed("/acct/t", comp="?comp=acl"), path="/acct/t", comp="acl")
    assert not check(signed("/acct/t", comp="?comp=acl"), path="/acct/t")


@pytest.mark.parametrize(
    "authorization",
    [
        signed("/acct/t", key=b"another key"),
        signed("/acct/t", verb="DELETE"),
        signed("/acct/u"),
        "SharedKey acct:not base64!",
        "SharedKey acct:",
        "SharedKey acct",
    ],
)
def test_anything_else_is_refused(authorization: str) -> None:
    assert not check(authorization, path="/acct/t")


def test_the_header_names_the_account() -> None:
    assert signed_account("SharedKey someone:c2ln") == "someone"
    assert signed_account("Bearer") == ""


KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/\\"), max_size=8)


@given(KEYS, KEYS, st.sampled_from(["", "!'()*", "!$&'()*,;=:@", "!$&'()*+,;=:@"]))
def test_every_key_has_the_form_of_the_known_clients_among_its_forms(
    partition_key: str, row_key: str, left_alone: str
) -> None:
    decoded = "/acct/t(PartitionKey='{}',RowKey='{}')".format(
        partition_key.replace("'", "''"), row_key.replace("'", "''")
    )
    encoded = "/acct/t(PartitionKey='{}',RowKey='{}')".format(
        quote(partition_key.replace("'", "''"), safe=left_alone), quote(row_key.replace("'", "''"), safe=left_alone)
    )
    assert encoded in wire_forms(decoded)


@given(st.text(max_size=30))
def test_the_forms_of_a_path_are_few_and_all_decode_to_it(text: str) -> None:
    path = "/" + text.encode("utf-8", "replace").decode()
    forms = list(wire_forms(path))
    assert 0 < len(forms) < 1000
    assert {unquote(form) for form in forms if "%" not in path} <= {path}


ALL_PUNCTUATION = "!$&''()*+,;=:@/"


@pytest.mark.parametrize("keys", [ALL_PUNCTUATION * 4300, "='" * 30000, "'" * 60000, "é" * 60000])
def test_a_path_of_any_length_has_few_forms(keys: str) -> None:
    path = f"/acct/t(PartitionKey='{keys}',RowKey='')"
    assert len(list(wire_forms(path))) <= 2


@pytest.mark.parametrize("count", [1, 5, 30, 100])
def test_the_forms_of_a_path_together_are_not_long(count: int) -> None:
    path = f"/acct/t(PartitionKey='{ALL_PUNCTUATION * count}',RowKey='{ALL_PUNCTUATION * count}')"
    forms = list(wire_forms(path))
    assert len(forms) < 300
    # Those of the known clients are tried whatever their length.
    assert sum(len(form) for form in forms) < 24 * 1024 + 30 * 3 * len(path)


def test_the_form_of_a_known_client_is_found_for_the_longest_keys() -> None:
    key = "é+'" * 170
    doubled = quote(key.replace("'", "''"), safe="!'()*")
    plain = key.replace("'", "''")
    path = f"/acct/t(PartitionKey='{plain}',RowKey='{plain}')"
    assert f"/acct/t(PartitionKey='{doubled}',RowKey='{doubled}')" in wire_forms(path)
