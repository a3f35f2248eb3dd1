"""Modules of the pages that neither draw nor ask: JSON without losses, parameters, completion, keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page

# Texts in which a reader that is not careful loses something.
EXACT = [
    '{"b":12345678901234567890,"a":1.0,"2":[1E+400,-0.0],"1":{},"":[[],[{}]]}',
    '"\\u00e9\\"\\\\\\/"',
    '{"a":1,"a":2}',
    "[true,false,null]",
    "0",
]
# A mistake, and the part of the text that is to be underlined.
MISTAKES = [
    ('{"a":}', "}"),
    ('{"a" 1}', "1"),
    ("[1,]", "]"),
    ("[1 2]", "2"),
    ("{a:1}", "a"),
    ('{"a":"x\ny"}', '"x'),
    ('"\\x"', '"\\x"'),
    ('{"a":1', "1"),
    ("01", "1"),
    ("nul", "nul"),
    ("{} {}", "{}"),
]


def evaluate(page: Page, module: str, expression: str, argument: Any) -> Any:
    """Evaluate an expression of JavaScript, in which `module` is a module of the portal and `given` the argument."""
    page.goto("/sign-in")
    return page.evaluate(
        f"""async (given) => {{
            const address = document.querySelector("script[type=module]").src.replace("page.js", "{module}.js");
            const module = await import(address);
            return {expression};
        }}""",
        argument,
    )


def test_json_is_printed_as_it_was_written(page: Page) -> None:
    expression = "given.map((text) => module.compactJson(module.parseJson(text)))"
    assert evaluate(page, "json_text", expression, EXACT) == EXACT
    expression = "given.map((text) => module.printJson(module.parseJson(text)))"
    printed = evaluate(page, "json_text", expression, EXACT)
    assert [json.loads(text) for text in printed] == [json.loads(text) for text in EXACT]


def test_a_mistake_in_json_is_found_where_it_is(page: Page) -> None:
    expression = "given.map((text) => module.problemsOf(text).map(({from, to}) => text.slice(from, to)))"
    found = evaluate(page, "json_text", expression, [text for text, _ in MISTAKES])
    assert found == [[part] for _, part in MISTAKES]


def test_nesting_without_end_is_a_mistake_and_no_crash(page: Page) -> None:
    found = evaluate(
        page, "json_text", "module.problemsOf('['.repeat(given)).map((problem) => problem.message)", 100_000
    )
    assert found == ["Values can be nested 500 deep."]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("", "[]"),
        (
            '{"@a": 1.0, "b": [9007199254740993]}',
            '[{"name":"@a","value":1.0},{"name":"@b","value":[9007199254740993]}]',
        ),
        ('[{"name": "@a", "value": 1}]', '[{"name":"@a","value":1}]'),
    ],
)
def test_parameters_become_the_list_of_the_protocol(page: Page, written: str, sent: str) -> None:
    assert evaluate(page, "query_run", "module.parametersText(given)", written) == sent


def test_aliases_stand_for_the_item_or_for_values_of_its_arrays(page: Page) -> None:
    queries = ["SELECT c.", "SELECT * FROM items i WHERE i.x = 1", "SELECT * FROM c JOIN l IN c.lines JOIN t IN l.tags"]
    assert evaluate(page, "query_complete", "given.map(module.aliasesOf)", queries) == [
        {"c": "", "root": ""},
        {"i": "", "root": ""},
        {"c": "", "root": "", "l": "lines[]", "t": "lines[].tags[]"},
    ]
