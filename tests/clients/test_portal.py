"""The portal at its port: options of the server, several processes, encryption."""

from __future__ import annotations

import http.client
import ssl
import time
from pathlib import Path
from urllib.parse import urlencode

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import WAIT_SECONDS_MAX, RunningServer, refused_start, running_server

DOORS = ("nosql", "portal")
FORM = {"content-type": "application/x-www-form-urlencoded"}


def ask(
    server: RunningServer, method: str, path: str, *, body: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, str]:
    """Send a request on a connection of its own, which any process of the server may accept."""
    port = server.ports["portal"]
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=ssl._create_unverified_context())
        if server.scheme == "https"
        else http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    )
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers, text


def sign_in(server: RunningServer) -> tuple[dict[str, str], str]:
    """Return the cookie as a header, and the token of the session's pages."""
    status, headers, _ = ask(server, "POST", "/sign-in", body=urlencode({"key": WELL_KNOWN_EMULATOR_KEY}), headers=FORM)
    assert status == 303
    cookie = {"cookie": headers["set-cookie"].partition(";")[0]}
    _, _, page = ask(server, "GET", "/", headers=cookie)
    return cookie, page.partition('name="csrf" content="')[2].partition('"')[0]


def test_signing_out_ends_the_session_in_every_process(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--workers", "2", doors=DOORS, alone=True, embedded=True) as server:
        cookie, token = sign_in(server)
        assert {ask(server, "GET", "/", headers=cookie)[0] for _ in range(10)} == {200}
        ask(server, "POST", "/sign-out", body=urlencode({"csrf": token}), headers={**FORM, **cookie})
        statuses = {200}
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while statuses != {303} and time.monotonic() < give_up_at:
            statuses = {ask(server, "GET", "/", headers=cookie)[0] for _ in range(10)}
        assert statuses == {303}


def test_the_cookie_is_for_encrypted_connections_where_there_are_such(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--https", doors=DOORS, alone=True, embedded=True) as server:
        _, headers, _ = ask(server, "POST", "/sign-in", body=urlencode({"key": WELL_KNOWN_EMULATOR_KEY}), headers=FORM)
        assert "Secure" in headers["set-cookie"].split("; ")


def test_the_greeting_names_the_portal_unless_it_is_off(tmp_path: Path) -> None:
    with running_server(tmp_path / "one", doors=DOORS, alone=True, embedded=True) as server:
        assert f"  Portal             http://127.0.0.1:{server.ports['portal']}/" in server.greeting
    with running_server(tmp_path / "two", "--no-portal", doors=DOORS, alone=True, embedded=True) as server:
        assert "Portal" not in server.greeting


def test_an_open_portal_listens_on_this_machine_only(tmp_path: Path) -> None:
    problem = refused_start(tmp_path / "data", "--apis", "nosql,portal", "--portal-open", "--host", "0.0.0.0")
    assert "--portal-open needs a loopback address" in problem
