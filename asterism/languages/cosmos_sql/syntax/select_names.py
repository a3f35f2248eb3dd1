"""The names of the properties that a SELECT list makes."""

from __future__ import annotations

from asterism.languages.cosmos_sql.syntax import tree


def names_of_select_items(items: tuple[tree.SelectItem, ...]) -> list[str]:
    """Return the property of each item: its alias, the last name of its path, or $1, $2 … in order."""
    names = []
    unnamed_count = 0
    for item in items:
        name = item.alias or _own_name(item.expression)
        if name is None:
            unnamed_count += 1
            name = f"${unnamed_count}"
        names.append(name)
    return names


def _own_name(expression: tree.Expression) -> str | None:
    match expression:
        case tree.Path(alias=alias, steps=steps):
            last = (alias, *steps)[-1]
            return last if isinstance(last, str) else None
        # A property of a subquery, a call or a literal, or below a computed step.
        case tree.Member(step=tree.Literal(value=str() as name)):
            return name
        case _:
            return None
