"""docs/conformance.md: a run replaces its own part and leaves the others alone."""

from __future__ import annotations

from conformance.document import with_part


def test_the_first_part_makes_the_document() -> None:
    assert with_part("", "nosql", "score 1\n") == (
        "# Conformance\n\n<!-- part nosql -->\nscore 1\n<!-- end nosql -->\n"
    )


def test_a_part_is_replaced_where_it_stands_and_others_stay() -> None:
    both = with_part(with_part("", "nosql", "score 1"), "tables", "score 2")
    again = with_part(both, "nosql", r"score \1 of 3")
    assert again == both.replace("score 1", r"score \1 of 3")
    assert again.index("score 2") > again.index("of 3")
