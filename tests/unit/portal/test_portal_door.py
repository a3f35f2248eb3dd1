"""The portal without a browser: who is let in, what a session may do, and what pages say."""

from __future__ import annotations

import json

import pytest

from asterism.access.account_settings import key_text
from asterism.access.keys import DEVELOPMENT_ACCOUNT, WELL_KNOWN_EMULATOR_KEY, AccountKeys, Grant
from asterism.apis.portal.sessions import Session, sign_session
from asterism.apis.portal.static_files import StaticFiles
from tests.unit.portal.portal_at_hand import assembled_portal, header_of, visitor

KEYS = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
BLUE_KEY = key_text(b"blue" * 16)
ITEM_HEADERS = {"x_ms_documentdb_partitionkey": '["a"]'}


async def test_a_visitor_without_a_session_is_asked_for_a_key() -> None:
    async with assembled_portal() as assembly:
        stranger = visitor(assembly)
        page = await stranger.send("GET", "/c/asterism/shop/orders", query={"tab": "1"})
        assert page.status == 303
        assert header_of(page, "location") == "/sign-in?next=%2Fc%2Fasterism%2Fshop%2Forders%3Ftab%3D1"
        assert await stranger.ask("GET", "asterism/nosql/dbs") == (
            401,
            {"code": "SignedOut", "message": "Your session has ended. Sign in again."},
        )


async def test_a_wrong_key_is_refused_with_a_hint() -> None:
    async with assembled_portal() as assembly:
        stranger = visitor(assembly)
        answer = await stranger.sign_in("d3Jvbmc=")
        assert answer.status == 403
        assert b"not a key of the server" in answer.body
        assert stranger.cookie == ""


async def test_the_cookie_is_of_this_site_only_and_out_of_reach_of_scripts() -> None:
    async with assembled_portal() as assembly:
        answer = await visitor(assembly).sign_in()
        cookie = header_of(answer, "set-cookie")
        assert cookie.startswith("asterism-portal-8090=")
        assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=28800"} <= set(cookie.split("; "))
        assert KEYS.primary not in cookie


@pytest.mark.parametrize("next", ["//evil.test/", "https://evil.test/", "/\\evil.test", "/api/asterism/nosql/dbs"])
async def test_signing_in_leads_to_no_other_site(next: str) -> None:
    async with assembled_portal() as assembly:
        answer = await visitor(assembly).sign_in(next=next)
        assert header_of(answer, "location") == "/"


async def test_doors_are_asked_with_the_visitors_rights() -> None:
    async with assembled_portal() as assembly:
        owner = visitor(assembly)
        await owner.sign_in()
        assert (await owner.ask("POST", "asterism/nosql/dbs", {"id": "shop"}))[0] == 201
        definition = {"id": "orders", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert (await owner.ask("POST", "asterism/nosql/dbs/shop/colls", definition))[0] == 201
        item = {"id": "1", "pk": "a"}
        status, created = await owner.ask("POST", "asterism/nosql/dbs/shop/colls/orders/docs", item, **ITEM_HEADERS)
        assert (status, created["id"]) == (201, "1")
        path = "asterism/nosql/dbs/shop/colls/orders/docs/1"
        assert (await owner.ask("PUT", path, item, if_match='"stale"', **ITEM_HEADERS))[0] == 412
        assert (await owner.ask("PUT", path, item, if_match=created["_etag"], **ITEM_HEADERS))[0] == 200
        status, offers = await owner.ask("GET", "asterism/nosql/offers")
        offer = offers["Offers"][0]
        assert (await owner.ask("PUT", f"asterism/nosql/offers/{offer['_rid']}", offer))[0] == 200
        status, shown = await owner.ask("GET", "asterism/admin/overview")
        assert [row["name"] for row in shown["collections"]] == ["orders"]
        table = f"{DEVELOPMENT_ACCOUNT}/table"
        headers = {"accept": "application/json"}
        assert (await owner.ask("POST", f"{table}/Tables", {"TableName": "orders"}, **headers))[0] == 201
        entity = {"PartitionKey": "a b'", "RowKey": "1:2"}
        assert (await owner.ask("POST", f"{table}/orders", entity, **headers))[0] == 201
        found = await owner.ask("GET", f"{table}/orders(PartitionKey='a b''',RowKey='1:2')", **headers)
        assert (found[0], found[1]["RowKey"]) == (200, "1:2")


async def test_a_read_only_key_sees_everything_and_changes_nothing() -> None:
    async with assembled_portal() as assembly:
        owner, reader = visitor(assembly), visitor(assembly)
        await owner.sign_in()
        await owner.ask("POST", "asterism/nosql/dbs", {"id": "shop"})
        await reader.sign_in(KEYS.primary_readonly)
        assert (await reader.ask("GET", "asterism/nosql/dbs/shop"))[0] == 200
        assert (await reader.ask("DELETE", "asterism/nosql/dbs/shop"))[0] == 403
        assert (await reader.ask("POST", "asterism/admin/split", {"database": "shop"}))[0] == 403
        table = f"{DEVELOPMENT_ACCOUNT}/table"
        assert (await reader.ask("GET", f"{table}/Tables", accept="application/json"))[0] == 200
        status, reply = await reader.ask("POST", f"{table}/Tables", {"TableName": "orders"})
        assert (status, reply["code"]) == (403, "Forbidden")
        home = (await reader.send("GET", "/")).body.decode()
        assert KEYS.primary not in home
        assert KEYS.primary_readonly in home
        assert "New container" not in home


async def test_another_accounts_key_shows_its_own_data_only() -> None:
    async with assembled_portal() as assembly:
        owner, blue = visitor(assembly), visitor(assembly)
        await owner.sign_in()
        account = {"name": "blue", "primary_key": BLUE_KEY}
        assert (await owner.ask("POST", "asterism/admin/accounts", account))[0] == 201
        await owner.ask("POST", "asterism/nosql/dbs", {"id": "ledger"})
        await blue.sign_in(BLUE_KEY)
        assert (await blue.ask("POST", "blue/nosql/dbs", {"id": "mine"}))[0] == 201
        assert [each["id"] for each in (await blue.ask("GET", "blue/nosql/dbs"))[1]["Databases"]] == ["mine"]
        for path in ("asterism/nosql/dbs", "asterism/admin/overview", f"{DEVELOPMENT_ACCOUNT}/table/Tables"):
            assert (await blue.ask("GET", path))[0] == 404
        for path in ("blue/admin/accounts", "blue/admin/nodes", "blue/admin/metrics"):
            assert (await blue.ask("GET", path))[0] == 403
        home = await blue.send("GET", "/")
        assert home.status == 200
        assert b"ledger" not in home.body
        assert (await owner.ask("GET", "blue/nosql/dbs/mine"))[0] == 200


async def test_a_change_needs_the_token_of_the_session() -> None:
    async with assembled_portal() as assembly:
        owner, other = visitor(assembly), visitor(assembly)
        await owner.sign_in()
        await other.sign_in()
        for sent in (
            {"with_csrf": False},
            {"headers": {"x-csrf-token": other.csrf}},
            {"headers": {"x-csrf-token": ""}},
        ):
            answer = await owner.send("POST", "/api/asterism/nosql/dbs", body=b'{"id": "x"}', **sent)  # type: ignore[arg-type]
            assert answer.status == 403
            assert b"Load it again" in answer.body
        assert (await owner.ask("GET", "asterism/nosql/dbs"))[1]["Databases"] == []


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"origin": "http://evil.test"}, 403),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", {"sec-fetch-site": "same-site"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ("POST", {"origin": "http://127.0.0.1:8090", "sec-fetch-site": "same-origin"}, 201),
        ("POST", {}, 201),
    ],
)
async def test_no_page_elsewhere_drives_the_portal(method: str, headers: dict[str, str], status: int) -> None:
    async with assembled_portal() as assembly:
        owner = visitor(assembly)
        await owner.sign_in()
        answer = await owner.send(method, "/api/asterism/nosql/dbs", body=b'{"id": "x"}', headers=headers)
        assert answer.status == status


async def test_a_host_name_of_a_stranger_is_refused() -> None:
    async with assembled_portal() as assembly:
        rebound = visitor(assembly, host="evil.test:8090")
        answer = await rebound.send("GET", "/sign-in")
        assert answer.status == 403
        assert b"--allowed-host" in answer.body


async def test_a_copied_cookie_is_worthless_after_signing_out() -> None:
    async with assembled_portal() as assembly:
        owner = visitor(assembly)
        await owner.sign_in()
        thief = visitor(assembly, cookie=owner.cookie)
        assert (await thief.send("GET", "/")).status == 200
        assert (await owner.send("POST", "/sign-out")).status == 303
        assert owner.cookie == "asterism-portal-8090="
        assert (await thief.send("GET", "/")).status == 303


async def test_an_expired_session_is_asked_to_sign_in_again() -> None:
    async with assembled_portal() as assembly:
        tokens = [sign_session(Session("asterism", Grant.FULL, "id", at), KEYS.decoded[0][0]) for at in (1, 2**40)]
        late, early = (visitor(assembly, cookie=f"asterism-portal-8090={token}") for token in tokens)
        assert (await late.ask("GET", "asterism/nosql/dbs"))[0] == 401
        assert (await early.ask("GET", "asterism/nosql/dbs"))[0] == 200


async def test_an_open_portal_lets_everybody_in_and_still_wants_the_token() -> None:
    async with assembled_portal(portal_open=True) as assembly:
        guest = visitor(assembly)
        assert (await guest.send("GET", "/")).status == 200
        assert (await guest.ask("POST", "asterism/nosql/dbs", {"id": "x"}))[0] == 201
        blind = visitor(assembly)
        assert (await blind.ask("POST", "asterism/nosql/dbs", {"id": "y"}))[0] == 403


async def test_pages_run_no_script_of_the_data() -> None:
    async with assembled_portal() as assembly:
        owner = visitor(assembly)
        await owner.sign_in()
        name = "<script>alert(1)<"
        await owner.ask("POST", "asterism/nosql/dbs", {"id": name})
        definition = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert (await owner.ask("POST", f"asterism/nosql/dbs/{name}/colls", definition))[0] == 201
        for path in ("/", f"/c/asterism/{name}/{name}", f"/c/asterism/{name}/{name}/items", f"/nowhere/{name}"):
            page = await owner.send("GET", path)
            assert name not in page.body.decode()
            assert "&lt;script&gt;alert(1)&lt;" in page.body.decode()
            policy = header_of(page, "content-security-policy")
            assert "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy
            assert header_of(page, "cache-control") == "no-store"


async def test_missing_things_are_named() -> None:
    async with assembled_portal() as assembly:
        owner = visitor(assembly)
        await owner.sign_in()
        page = await owner.send("GET", "/c/asterism/shop/orders")
        assert page.status == 404
        assert b"There is no database &#39;shop&#39;." in page.body
        assert (await owner.send("GET", "/nowhere")).status == 404
        assert (await owner.ask("GET", "asterism/mysql/x")) == (
            404,
            {"code": "NotFound", "message": "There is no door 'mysql'."},
        )
        assert (await owner.ask("GET", "nobody/nosql/dbs"))[0] == 404
        comparison = await owner.send("GET", "/compare", query={"left": "a"})
        assert comparison.status == 400
        assert b"left=ACCOUNT/DATABASE/CONTAINER" in comparison.body


@pytest.mark.parametrize(
    "path", ["/static/x/../door.py", "/static/x/", "/static/", "/static/x/app.py", "/static//app.css/"]
)
async def test_only_files_of_the_portal_are_static(path: str) -> None:
    async with assembled_portal() as assembly:
        assert (await visitor(assembly).send("GET", path)).status == 404


async def test_static_files_are_cached_under_the_digest_of_their_content() -> None:
    async with assembled_portal() as assembly:
        stranger = visitor(assembly)
        page = (await stranger.send("GET", "/sign-in")).body.decode()
        address = page.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
        found = await stranger.send("GET", address)
        assert (found.status, header_of(found, "content-type")) == (200, "text/css; charset=utf-8")
        assert "immutable" in header_of(found, "cache-control")
        older = await stranger.send("GET", "/static/000000000000/app.css")
        assert (older.status, header_of(older, "cache-control")) == (200, "no-store")


async def test_a_body_that_is_no_form_is_refused() -> None:
    async with assembled_portal() as assembly:
        stranger = visitor(assembly)
        answer = await stranger.send("POST", "/sign-in", body=b"key=\xff&" + b"&".join(b"a=1" for _ in range(50)))
        assert answer.status == 400


async def test_the_portal_counts_its_requests_by_page() -> None:
    async with assembled_portal() as assembly:
        owner = visitor(assembly)
        await owner.sign_in()
        await owner.ask("GET", "asterism/nosql/dbs")
        counted = assembly.services.meter.counts.doors["portal"].operations
        assert {"sign_in", "home", "api_get"} <= set(counted)
        assert json.dumps(sorted(counted))


async def test_a_page_names_every_module_that_its_script_imports() -> None:
    files = StaticFiles()
    addresses = [address.rpartition("/")[2] for address in files.modules("items.js")]
    assert addresses[0] == "items.js"
    assert {"ui.js", "api.js", "editor.js", "codemirror.js", "query.js"} <= set(addresses)
    assert len(addresses) == len(set(addresses))
    async with assembled_portal() as assembly:
        page = (await visitor(assembly).send("GET", "/sign-in")).body.decode()
        assert f'<script type="module" src="{files.address("page.js")}"></script>' in page
        assert f'<link rel="modulepreload" href="{files.address("ui.js")}">' in page
