"""A projection as a tree of names, and what it makes of a document: fields kept, removed and computed.

The tree is entered as deep as the document goes; arrays are entered at every level, so that `a.b` means the `b` of all
documents below `a`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asterism.languages.mongo.expressions.operator import Evaluate, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import MISSING, Document

# Changes a value below a name; gets the whole document for the expressions.
Apply = Callable[[Any, Document, Variables], Any]
ApplyDocument = Callable[[Document, Variables], Document]


@dataclass(slots=True)
class Tree:
    """The fields of one level: those that are listed, those that are computed, and the levels below."""

    listed: set[str] = field(default_factory=set)
    computed: dict[str, Evaluate] = field(default_factory=dict)
    children: dict[str, Tree] = field(default_factory=dict)
    # The names of `computed` and `children` as they were written: the order in which new fields are appended.
    order: list[str] = field(default_factory=list)

    def child(self, name: str) -> Tree:
        if name not in self.children:
            self.children[name] = Tree()
            self.order.append(name)
        return self.children[name]

    def compute(self, parts: tuple[str, ...], evaluate: Evaluate) -> None:
        tree = self
        for part in parts[:-1]:
            tree = tree.child(part)
        tree.computed[parts[-1]] = evaluate
        tree.order.append(parts[-1])

    def list_path(self, parts: tuple[str, ...]) -> None:
        tree = self
        for part in parts[:-1]:
            tree = tree.child(part)
        tree.listed.add(parts[-1])

    def has_computed(self) -> bool:
        return bool(self.computed) or any(child.has_computed() for child in self.children.values())


def _everywhere(apply_document: Apply, apply_other: Apply) -> Apply:
    """Apply one function to documents, also to those in arrays, and another to all other values."""

    def apply(value: Any, root: Document, variables: Variables) -> Any:
        if type(value) is dict:
            return apply_document(value, root, variables)
        if type(value) is list:
            results = [apply(element, root, variables) for element in value]
            return [result for result in results if result is not MISSING]
        return apply_other(value, root, variables)

    return apply


def _compute_fields(tree: Tree, child_applies: dict[str, Apply]) -> Callable[[Document, Document, Variables], None]:
    """Return the function that adds the computed fields of a level to a document, in place."""
    steps: list[tuple[str, Evaluate | None, Apply | None]] = []
    for name in tree.order:
        if name in tree.computed:
            steps.append((name, tree.computed[name], None))
        elif name in child_applies:
            steps.append((name, None, child_applies[name]))

    def compute(output: Document, root: Document, variables: Variables) -> None:
        for name, evaluate, apply in steps:
            if evaluate is not None:
                value = evaluate(root, variables)
            elif apply is not None:
                value = apply(output.get(name, MISSING), root, variables)
            if value is not MISSING:
                output[name] = value
            else:
                output.pop(name, None)

    return compute


def add_fields(tree: Tree) -> Apply:
    """Return the function that sets computed fields and keeps the others; a value that is no document becomes one."""
    compute = _compute_fields(tree, {name: add_fields(child) for name, child in tree.children.items()})

    def apply_document(value: Document, root: Document, variables: Variables) -> Document:
        output = dict(value)
        compute(output, root, variables)
        return output

    def apply_other(_: Any, root: Document, variables: Variables) -> Document:
        output: Document = {}
        compute(output, root, variables)
        return output

    return _everywhere(apply_document, apply_other)


def include_fields(tree: Tree) -> Apply:
    """Return the function that keeps the listed fields, in the order of the document, and appends the computed ones."""
    # Levels that only list fields are done while copying; those with computed fields come afterwards, since they may
    # also create the field.
    plain = {name: include_fields(child) for name, child in tree.children.items() if not child.has_computed()}
    creating = {name: include_fields(child) for name, child in tree.children.items() if child.has_computed()}
    copied = tree.listed | creating.keys()
    compute = _compute_fields(tree, creating)
    computes = tree.has_computed()

    def apply_document(value: Document, root: Document, variables: Variables) -> Document:
        if not plain:
            output = {name: part for name, part in value.items() if name in copied}
        else:
            output = {}
            for name, part in value.items():
                if name in copied:
                    output[name] = part
                elif name in plain:
                    below = plain[name](part, root, variables)
                    if below is not MISSING:
                        output[name] = below
        if computes:
            compute(output, root, variables)
        return output

    def apply_other(_: Any, root: Document, variables: Variables) -> Any:
        if not computes:
            return MISSING
        output: Document = {}
        compute(output, root, variables)
        return output

    return _everywhere(apply_document, apply_other)


def exclude_fields(tree: Tree) -> Apply:
    """Return the function that removes the listed fields and keeps all others."""
    listed = tree.listed
    children = {name: exclude_fields(child) for name, child in tree.children.items() if not child.has_computed()}
    creating = {name: exclude_fields(child) for name, child in tree.children.items() if child.has_computed()}
    compute = _compute_fields(tree, creating)
    computes = tree.has_computed()

    def apply_document(value: Document, root: Document, variables: Variables) -> Document:
        output = {name: part for name, part in value.items() if name not in listed}
        for name, apply in children.items():
            if name in output:
                output[name] = apply(output[name], root, variables)
        if computes:
            compute(output, root, variables)
        return output

    def apply_other(value: Any, root: Document, variables: Variables) -> Any:
        if not computes:
            return value
        output: Document = {}
        compute(output, root, variables)
        return output

    return _everywhere(apply_document, apply_other)


def on_documents(apply: Apply) -> ApplyDocument:
    """Return the function over whole documents."""

    def apply_root(document: Document, variables: Variables) -> Document:
        try:
            output: Document = apply(document, document, variables)
        except RecursionError:
            # A long path below deep arrays gives a document deeper than BSON may be, so that refusing it loses nothing.
            raise MongoFailure(15, "The projected document is nested too deeply") from None
        return output

    return apply_root
