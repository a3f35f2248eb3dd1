"""The collection as a script sees it: each operation, its options, its links, its errors."""

from __future__ import annotations

import pytest

from asterism.scripts.operations import FeedOptions, ItemReference, ScriptQuery, WriteOptions
from tests.unit.scripts.dict_operations import SCOPE, DictOperations, ScriptBench


async def test_a_created_document_arrives_at_the_callback_with_its_system_properties(bench: ScriptBench) -> None:
    inside = "collection.createDocument(link, {id: 'a', n: first}, function (e, d, o) { reply([e, d, o]); });"
    error, document, options = await bench.answer(inside, 7)
    assert error is None
    assert document["n"] == 7
    assert document["_self"] == "dbs/ZGI=/colls/ZGJjb2w=/docs/rid-a/"
    assert options == {"statusCode": 201}


async def test_a_document_without_an_id_gets_one(bench: ScriptBench) -> None:
    made = await bench.answer("reply(collection.createDocument(link, {n: 1}));")
    assert made is True
    assert [len(item_id) for item_id in bench.operations.items] == [36]


async def test_no_id_is_made_when_the_script_forbids_it(bench: ScriptBench) -> None:
    inside = """collection.createDocument(link, {n: 1}, {disableAutomaticIdGeneration: true},
        function (e) { reply(e.number); });"""
    assert await bench.answer(inside) == 400


async def test_a_document_may_be_given_as_json_text(bench: ScriptBench) -> None:
    await bench.answer("""collection.createDocument(link, '{"id": "t"}');""")
    assert list(bench.operations.items) == ["t"]


async def test_a_document_is_taken_as_it_is_when_the_call_is_made(bench: ScriptBench) -> None:
    await bench.answer("var d = {id: 'a', n: 1}; collection.createDocument(link, d); d.n = 2;")
    assert bench.operations.items["a"]["n"] == 1


async def test_an_upsert_distinguishes_a_new_document_from_an_old_one(bench: ScriptBench) -> None:
    inside = """var codes = [];
        function note(e, d, o) { codes.push(o.statusCode); reply(codes); }
        collection.upsertDocument(link, {id: 'a'}, note); collection.upsertDocument(link, {id: 'a'}, {}, note);"""
    assert await bench.answer(inside) == [201, 200]


async def test_a_document_is_read_replaced_and_deleted_by_its_self_link(bench: ScriptBench) -> None:
    inside = """collection.createDocument(link, {id: 'a', n: 1}, function (e, d) {
        d.n = 2;
        collection.replaceDocument(d._self, d, function (e, d) {
            collection.readDocument(d._self, function (e, d) {
                var n = d.n;
                collection.deleteDocument(d._self, {}, function (e, o) { reply([n, o.statusCode]); });
            });
        });
    });"""
    assert await bench.answer(inside) == [2, 204]
    assert bench.operations.items == {}
    # The script has received the document, so its id is known without a search.
    assert ("read", ItemReference("a", "rid-a")) in bench.operations.calls


async def test_a_self_link_that_the_script_was_not_given_is_looked_up_by_resource_id(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a"})
    inside = "collection.readDocument(link + 'docs/rid-a/', function (e, d) { reply(d.id); });"
    assert await bench.answer(inside) == "a"
    assert bench.operations.calls == [("read", ItemReference(None, "rid-a"))]


async def test_an_alternative_link_names_a_document_by_its_id(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a b"})
    inside = "collection.readDocument(collection.getAltLink() + '/docs/a b', function (e, d) { reply(d.id); });"
    assert await bench.answer(inside) == "a b"


async def test_a_read_with_the_current_etag_is_not_modified(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a"})
    inside = """collection.readDocument(collection.getAltLink() + '/docs/a', {ifNoneMatch: '"1"'},
        function (e, d, o) { reply([d === undefined, o.notModified]); });"""
    assert await bench.answer(inside) == [True, True]


async def test_a_replace_with_an_old_etag_is_refused(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a"})
    inside = """collection.replaceDocument(collection.getAltLink() + '/docs/a', {id: 'a'}, {etag: '"0"'},
        function (e) { reply(e.number === ErrorCodes.PreconditionFailed); });"""
    assert await bench.answer(inside) is True


async def test_the_indexing_wish_reaches_the_operation(bench: ScriptBench) -> None:
    await bench.answer("collection.createDocument(link, {id: 'a'}, {indexAction: 'exclude'});")
    assert bench.operations.calls == [("create", WriteOptions(None, None, "exclude"))]


async def test_a_query_is_given_as_text_or_with_parameters(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a"}, {"id": "b"})
    inside = """collection.queryDocuments(link, 'SELECT * FROM c', function (e, feed) {
        collection.queryDocuments(link, {query: 'SELECT @n', parameters: [{name: '@n', value: 1}]}, {},
            function (e, again, o) { reply([feed.length, again.length, o.continuation === undefined]); });
    });"""
    assert await bench.answer(inside) == [2, 2, True]
    asked = [detail for _, detail in bench.operations.calls]
    assert asked == [ScriptQuery("SELECT * FROM c", []), ScriptQuery("SELECT @n", [{"name": "@n", "value": 1}])]


async def test_pages_are_read_with_their_continuations(bench: ScriptBench) -> None:
    bench.operations = DictOperations(*({"id": str(number)} for number in range(5)))
    inside = """var seen = [];
        (function page(continuation) {
            collection.readDocuments(link, {pageSize: 2, continuation: continuation}, function (e, feed, o) {
                seen.push(feed.length);
                if (o.continuation) page(o.continuation); else reply(seen);
            });
        })();"""
    assert await bench.answer(inside) == [2, 2, 1]


async def test_a_page_has_a_hundred_documents_unless_the_script_says_otherwise(bench: ScriptBench) -> None:
    await bench.answer("collection.readDocuments(link);")
    assert bench.operations.calls == [("feed", FeedOptions(100, None))]


async def test_an_error_arrives_at_the_callback_as_number_and_body(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a"})
    inside = """collection.createDocument(link, {id: 'a'}, function (e, d) {
        reply([e.number, e.body, e instanceof Error, d === undefined]);
    });"""
    assert await bench.answer(inside) == [409, "An item with this id exists already.", True, True]


async def test_an_error_without_a_callback_ends_the_script(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a"})
    failed = await bench.failure(
        "collection.createDocument(link, {id: 'a'}); collection.createDocument(link, {id: 'b'});"
    )
    assert (failed.status, failed.number) == (400, 409)
    assert list(bench.operations.items) == ["a"]
    assert bench.operations.rollback_count == 1


async def test_another_partition_key_is_refused(bench: ScriptBench) -> None:
    inside = "collection.createDocument(link, {id: 'a', pk: 'other'}, function (e) { reply(e.number); });"
    assert await bench.answer(inside) == 400


@pytest.mark.parametrize(
    "call",
    [
        "collection.createDocument('dbs/ZGI=/colls/other/', {})",
        "collection.createDocument(5, {})",
        "collection.readDocument('dbs/x/colls/y/docs/z')",
        "collection.readDocument(link)",
        "collection.deleteDocument(link + 'docs/a/attachments/b')",
        "collection.createDocument(link)",
        "collection.createDocument(link, 5)",
        "collection.createDocument(link, null)",
        "collection.createDocument(link, [])",
        "collection.createDocument(link, {}, 5)",
        "collection.createDocument(link, {}, {}, 5)",
        "collection.queryDocuments(link, 5)",
        "collection.queryDocuments(link)",
        "collection.createAttachment(link, {})",
        "collection.readAttachments(link)",
    ],
)
async def test_an_invalid_call_throws_a_bad_request(bench: ScriptBench, call: str) -> None:
    assert await bench.answer(f"try {{ {call}; }} catch (e) {{ reply(e.number); }}") == 400
    assert bench.operations.calls == []


async def test_a_query_that_does_not_compile_is_an_error_of_the_operation(bench: ScriptBench) -> None:
    assert await bench.answer("collection.queryDocuments(link, 'nonsense', function (e) { reply(e.number); });") == 400


async def test_the_links_are_those_of_the_collection(bench: ScriptBench) -> None:
    links = await bench.answer("reply([__.getSelfLink(), __.getAltLink()]);")
    assert links == [SCOPE.self_link, SCOPE.alt_link]


async def test_operations_are_carried_out_in_the_order_of_the_calls(bench: ScriptBench) -> None:
    await bench.answer("""
        collection.createDocument(link, {id: 'a'}, function () { collection.createDocument(link, {id: 'c'}); });
        collection.createDocument(link, {id: 'b'});""")
    assert list(bench.operations.items) == ["a", "b", "c"]
