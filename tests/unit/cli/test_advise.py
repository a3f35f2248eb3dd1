"""`asterism advise` on files, as its user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from asterism.cli.failure import CommandFailed
from asterism.cli.main import app
from asterism.values.json.text import dumps
from tests.unit.advisor.advised import orders, queries, reads

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command on orders and requests of a shop; `items` and `requests` replace the lines of the files."""

    def runner(
        *arguments: str, items: Sequence[bytes] | None = None, requests: Sequence[bytes] | None = None
    ) -> Result:
        (tmp_path / "items.jsonl").write_bytes(b"\n".join(items or [dumps(item) for item in orders(300)]))
        lines = [request.to_json() for request in [*reads(200), *queries(100, "/tenantId", ["t1", "t2", "t3"])]]
        (tmp_path / "requests.jsonl").write_bytes(b"".join(lines) if requests is None else b"\n".join(requests))
        files = ["--items", str(tmp_path / "items.jsonl"), "--requests", str(tmp_path / "requests.jsonl")]
        return CliRunner().invoke(app, ["advise", *files, *arguments])

    return runner


def refused(run: Run, *arguments: str, **lines: Any) -> str:
    result = run(*arguments, **lines)
    assert isinstance(result.exception, CommandFailed)
    return str(result.exception)


def test_the_table_ends_with_the_command_to_go_on_with(run: Run) -> None:
    result = run("--present-key", "/tenantId", "--ru", "24000")
    assert result.exit_code == 0
    assert "300 items" in result.output
    assert result.stdout.strip().splitlines()[-1] == (
        "asterism rekey DATABASE CONTAINER --to CONTAINER-rekeyed --path /tenantId --path /id"
    )


def test_the_present_key_needs_no_command_if_it_is_the_best(run: Run) -> None:
    result = run("--present-key", "/tenantId,/id", "--ru", "24000")
    assert "The present key, /tenantId, /id, is the best" in result.output


def test_json_has_every_figure_of_every_candidate(run: Run) -> None:
    report = json.loads(run("--present-key", "/tenantId", "--ru", "24000", "--json").stdout)
    assert report["present"] == "/tenantId"
    first = report["candidates"][0]
    assert first["rank"] == 1
    assert first["definition"] == {"paths": ["/tenantId", "/id"], "kind": "MultiHash", "version": 2}
    assert {"gini", "ruNeeded", "throttledShare", "hottestPartition", "isUnique", "fullAfterSeconds"} <= first.keys()


def test_lines_that_cannot_be_read_are_counted_and_not_fatal(run: Run) -> None:
    items = [*(dumps(item) for item in orders(50)), b"nonsense", b"[1]"]
    requests = [request.to_json() for request in reads(20)] + [b'{"operation": "read"}', b'{"at": 1, "oper']
    result = run("--present-key", "/tenantId", items=items, requests=requests)
    assert result.exit_code == 0
    assert "2 lines of the items were passed over" in result.output
    assert "line 51: It is not JSON" in result.output
    assert "2 lines of the requests were passed over" in result.output
    assert "the file ends in the middle of it" in result.output


def test_the_page_is_complete_in_itself_and_escapes_what_users_wrote(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    hostile = [dumps({"id": f"<script>{number}", "a<b>": f"<img src=x>{number % 3}"}) for number in range(60)]
    result = run("--html", str(page), "--present-key", "/id", items=hostile, requests=[])
    assert result.exit_code == 0
    text = page.read_text()
    assert "<svg" in text
    assert "prefers-color-scheme: dark" in text
    assert "<script" not in text
    assert "<img" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "&lt;script&gt;" in text


def test_a_page_shows_the_present_and_the_proposed_key_side_by_side(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    run("--html", str(page), "--present-key", "/tenantId", "--ru", "24000")
    text = page.read_text()
    assert "Present: /tenantId" in text
    assert "Proposed: /tenantId, /id" in text
    assert text.count('class="heat"') > 8


@pytest.mark.parametrize(
    ("arguments", "lines", "message"),
    [
        (["--ru", "0"], {}, "--ru 0 is no throughput"),
        (["--present-key", "/nowhere"], {}, "no item has a value at /nowhere"),
        (["--present-key", "tenant"], {}, "is not a partition key"),
        (["--candidate", "/a b"], {}, "is not a partition key"),
        ([], {"items": [b"nonsense"]}, "there are no items to judge a key by; 1 lines are not items"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_line(
    run: Run, arguments: list[str], lines: dict[str, Any], message: str
) -> None:
    assert message in refused(run, *arguments, **lines)


def test_a_file_that_cannot_be_read_is_named() -> None:
    result = CliRunner().invoke(app, ["advise", "--items", "/nowhere/items.jsonl"])
    assert isinstance(result.exception, CommandFailed)
    assert str(result.exception) == "/nowhere/items.jsonl cannot be read: No such file or directory"


def test_a_container_and_files_are_not_read_together() -> None:
    result = CliRunner().invoke(app, ["advise", "shop", "orders", "--requests", "requests.jsonl"])
    assert isinstance(result.exception, CommandFailed)


def test_help_teaches_what_is_read_and_how_to_go_on() -> None:
    shown = CliRunner().invoke(app, ["advise", "--help"]).output
    for taught in ("What it reads", "What the columns mean", "How to go on", "asterism rekey", "capture"):
        assert taught in shown
