"""Steps that ask for a report on the traversal before them, instead of its results."""

from __future__ import annotations

from typing import Literal

from asterism.languages.gremlin.tree import Traversal

Report = Literal["executionProfile", "profile", "explain"]
_REPORTS: dict[str, Report] = {
    "executionProfile": "executionProfile",
    "profile": "profile",
    "explain": "explain",
}


def split_report(traversal: Traversal) -> tuple[Traversal, Report | None]:
    """Return the traversal that is reported on, and the report asked for; `profile('x').cap('x')` is `profile()`."""
    steps = traversal.steps
    if len(steps) > 1 and steps[-1].name == "cap" and steps[-2].name == "profile":
        if steps[-1].arguments == steps[-2].arguments:
            return Traversal(steps[:-2], traversal.source), "profile"
    elif steps and steps[-1].name in _REPORTS and (steps[-1].name != "profile" or not steps[-1].arguments):
        return Traversal(steps[:-1], traversal.source), _REPORTS[steps[-1].name]
    return traversal, None
