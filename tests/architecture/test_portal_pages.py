"""Rules of the portal's pages that a search can check: data never becomes markup, and pages hold no code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.test_floors import PACKAGE, PROJECT

PORTAL = PROJECT / PACKAGE / "apis" / "portal"
SCRIPTS = sorted((PORTAL / "static").glob("*.js"))
TEMPLATES = sorted((PORTAL / "templates").glob("*.html"))
# Ways to make elements or code out of text.
MARKUP_FROM_TEXT = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function"
)
# The content security policy refuses them, so that they would only look as if they worked.
CODE_IN_MARKUP = re.compile(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style|javascript:|\|\s*safe\b|autoescape")
LINES_MAX = 300


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_never_makes_markup_of_data(script: Path) -> None:
    assert MARKUP_FROM_TEXT.findall(script.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_holds_no_code_and_escapes_everything(template: Path) -> None:
    assert CODE_IN_MARKUP.findall(template.read_text(encoding="utf-8")) == []


def test_no_script_of_the_portal_grows_without_end() -> None:
    assert [path.name for path in SCRIPTS if len(path.read_text(encoding="utf-8").splitlines()) > LINES_MAX] == []


def test_every_script_is_part_of_a_page() -> None:
    """Find every script from the templates, directly or by imports."""
    named = {
        name for path in TEMPLATES for name in re.findall(r"(?:module|static)\('([\w.]+\.js)'\)", path.read_text())
    }
    waiting = list(named)
    while waiting:
        imported = set(re.findall(r'"\./([\w.]+\.js)"', (PORTAL / "static" / waiting.pop()).read_text()))
        waiting += imported - named
        named |= imported
    assert {path.name for path in SCRIPTS} - named == set()
