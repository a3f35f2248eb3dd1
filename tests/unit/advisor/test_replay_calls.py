"""Requests of a capture as a client of a container with another key sends them."""

from __future__ import annotations

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.replay_calls import Call, Client
from asterism.advisor.replay_items import ItemModel
from asterism.partitioning.synthetic_key import KeyRule
from asterism.values.undefined import UNDEFINED

PRESENT = CandidateKey.of_paths("/tenant")
ITEM = {"id": "1", "tenant": "t", "user": "u", "at": "2026-03-02T08:00:00Z", "n": 1}
BY_DAY = CandidateKey.of_rule(KeyRule.parse({"parts": ["/tenant", {"path": "/at", "bucket": "day"}]}))
RANDOM = CandidateKey.of_rule(KeyRule.parse({"parts": ["/tenant"], "suffix": {"kind": "random", "count": 4}}))
HASHED = CandidateKey.of_rule(
    KeyRule.parse({"parts": ["/tenant"], "suffix": {"kind": "hash", "path": "/id", "count": 4}})
)


def client(*paths: str) -> Client:
    return client_of(CandidateKey.of_paths(*paths))


def client_of(key: CandidateKey) -> Client:
    return Client(key, PRESENT, ItemModel(PRESENT, [ITEM]))


def read() -> CapturedRequest:
    return CapturedRequest(0.0, "read", item_id="1", key=("t",))


def patch(values: dict[str, str | int | float | bool | None]) -> CapturedRequest:
    return CapturedRequest(0.0, "patch", item_id="1", key=("t",), values=values)


def query(**equal: str) -> CapturedRequest:
    return CapturedRequest(0.0, "query", equal={f"/{path}": (value,) for path, value in equal.items()}, results=5)


def test_a_read_that_knows_the_key_is_a_point_read() -> None:
    assert client("/tenant").carry_out(read()).calls == (Call("read", key=("t",), item_id="1"),)
    assert client("/id").carry_out(read()).calls == (Call("read", key=("1",), item_id="1"),)


def test_a_read_that_does_not_know_the_key_asks_every_partition_for_the_id() -> None:
    (call,) = client("/user").carry_out(read()).calls
    assert call.kind == "query"
    assert call.fans_out
    assert call.body["query"] == "SELECT * FROM c WHERE c.id = @id"


def test_a_read_that_knows_the_first_level_of_a_key_asks_for_the_id_below_it() -> None:
    (call,) = client("/tenant", "/user").carry_out(read()).calls
    assert (call.kind, call.key, call.fans_out) == ("query", ("t",), False)


def test_a_read_under_a_suffix_names_the_sources_or_the_key_that_they_give() -> None:
    (drawn,) = client_of(RANDOM).carry_out(read()).calls
    assert (drawn.kind, drawn.key, len(drawn.searched)) == ("read", ("t",), 4)
    (hashed,) = client_of(HASHED).carry_out(read()).calls
    assert hashed.key == HASHED.key_of(ITEM)


def test_a_write_of_an_item_whose_key_is_not_known_is_preceded_by_a_query_for_it() -> None:
    calls = client("/user").carry_out(patch({"/n": 2})).calls
    assert [call.kind for call in calls] == ["query", "patch"]
    assert calls[1].key == ("u",)


def test_a_write_of_an_unknown_item_ends_with_the_query() -> None:
    missing = CapturedRequest(0.0, "delete", item_id="2", key=("t",))
    assert [call.kind for call in client("/user").carry_out(missing).calls] == ["query"]


def test_a_patch_that_changes_the_key_deletes_the_item_and_creates_it_anew() -> None:
    carried = client("/n").carry_out(patch({"/n": 2}))
    assert carried.moves_item
    assert [(call.kind, call.key) for call in carried.calls[1:]] == [("delete", (1,)), ("create", (2,))]


def test_an_item_that_was_patched_is_found_under_its_new_values() -> None:
    sender = client("/n")
    sender.carry_out(patch({"/n": 2}))
    assert [call.key for call in sender.carry_out(patch({"/n": 3})).calls] == [None, (2,), (3,)]


def test_a_create_names_the_key_of_its_item_and_a_synthetic_one_is_left_to_the_server() -> None:
    create = CapturedRequest(0.0, "create", item_id="2", values={"/tenant": "t", "/user": "v", "/a/b": 1})
    (plain,) = client("/user").carry_out(create).calls
    assert (plain.key, plain.body) == (("v",), {"id": "2", "tenant": "t", "user": "v", "a": {"b": 1}})
    (synthetic,) = client_of(RANDOM).carry_out(create).calls
    assert synthetic.key == (UNDEFINED,)
    assert synthetic.key_text == "[{}]"


def test_a_query_goes_to_the_partition_that_its_filter_fixes_or_to_all() -> None:
    assert client("/user").carry_out(query(user="u")).calls[0].key == ("u",)
    assert client("/tenant", "/user").carry_out(query(tenant="t")).calls[0].key == ("t",)
    assert client("/id").carry_out(query(user="u")).calls[0].fans_out


def test_a_query_of_several_keys_is_left_to_its_filter() -> None:
    several = CapturedRequest(0.0, "query", equal={"/user": ("u", "v")})
    (call,) = client("/user").carry_out(several).calls
    assert call.is_pinned
    assert not call.fans_out


def test_a_query_of_some_days_is_left_to_its_filter_too() -> None:
    bounds = ("2026-03-01T10:00:00Z", "2026-03-02T09:00:00Z")
    days = CapturedRequest(0.0, "query", equal={"/tenant": ("t",)}, between={"/at": bounds})
    (call,) = client_of(BY_DAY).carry_out(days).calls
    assert call.is_pinned


def test_a_key_that_was_named_beside_a_query_becomes_a_condition_where_it_is_none_any_more() -> None:
    named = CapturedRequest(0.0, "query", key=("t",), equal={"/user": ("u",)})
    (same,) = client("/tenant").carry_out(named).calls
    assert (same.key, same.body["query"]) == (("t",), 'SELECT * FROM c WHERE c["user"] = @p0')
    (other,) = client("/user").carry_out(named).calls
    assert (other.key, other.body["query"]) == (
        ("u",),
        'SELECT * FROM c WHERE c["user"] = @p0 AND c["tenant"] = @p1',
    )


def test_a_batch_under_one_key_stays_a_transaction() -> None:
    operations = [
        CapturedRequest(0.0, "create", item_id="2", values={"/tenant": "t", "/user": "u"}, batch="b"),
        CapturedRequest(0.0, "patch", item_id="1", key=("t",), values={"/n": 2}, batch="b"),
    ]
    carried = client("/tenant").carry_out_batch(operations)
    assert [call.kind for call in carried.calls] == ["batch"]
    assert carried.calls[0].body[1] == {
        "operationType": "Patch",
        "id": "1",
        "resourceBody": {"operations": [{"op": "set", "path": "/n", "value": 2}]},
    }
    assert not carried.breaks_batch


def test_a_batch_over_several_keys_is_broken_into_its_operations() -> None:
    operations = [
        CapturedRequest(0.0, "create", item_id=item_id, values={"/tenant": "t"}, batch="b") for item_id in ("2", "3")
    ]
    carried = client("/id").carry_out_batch(operations)
    assert [call.kind for call in carried.calls] == ["create", "create"]
    assert carried.breaks_batch


def test_a_script_is_not_replayed() -> None:
    assert client("/tenant").carry_out(CapturedRequest(0.0, "script", key=("t",))).calls == ()
