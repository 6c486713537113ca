"""Memories are written by `store` alone, which keeps the derived stores, and no database cascade deletes one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import models

from store.models import Memory

ROOT = Path(__file__).parents[2]
APPS = (
    "accounts", "agents", "console", "core", "engines", "memories", "memory_gateway", "operations", "profiles",
    "remote", "resources", "webhooks",
)  # fmt: skip
WRITES = frozenset({
    "abulk_create", "abulk_update", "acreate", "adelete", "asave", "aupdate", "bulk_create", "bulk_update", "create",
    "delete", "get_or_create", "save", "save_base", "update", "update_or_create",
})  # fmt: skip


HELD = frozenset({
    "Memory", "Memory | None", "QuerySet[Memory]", "Sequence[Memory]", "Iterable[Memory]", "list[Memory]",
})  # fmt: skip
"""The annotations of parameters that hold memories."""
CHAINED = frozenset({
    "alias", "all", "annotate", "defer", "distinct", "exclude", "filter", "first", "get", "iterator", "last", "only",
    "order_by", "select_for_update", "select_related", "using",
})  # fmt: skip


def is_of_memories(node: ast.AST | None, known: set[str]) -> bool:
    """Return True for an expression that gives memories; `known` are such names and functions."""
    match node:
        case (
            ast.Attribute(value=ast.Name(id="Memory"), attr="objects" | "_default_manager" | "_base_manager")
            | ast.Attribute(attr="memory" | "memories")
            | ast.Name(id="memory")
            | ast.Call(func=ast.Name(id="Memory"))
            | ast.Call(func=ast.Name(id="QuerySet"), args=[ast.Name(id="Memory")])
        ):
            found = True
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name), args=[]):
            found = name in known
        case ast.Call(func=ast.Name(id=name), args=[first, *_]):
            found = name in known or (name in {"list", "sorted", "next", "iter"} and is_of_memories(first, known))
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            found = attr in known or (attr in CHAINED and is_of_memories(value, known))
        case ast.Subscript(value=value) | ast.NamedExpr(value=value):
            found = is_of_memories(value, known)
        case ast.DictComp(value=ast.Name(), generators=[one]) | ast.ListComp(elt=ast.Name(), generators=[one]):
            found = is_of_memories(one.iter, known)
        case _:
            found = False
    return found


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def known_names(part: ast.AST, functions: set[str]) -> set[str]:
    """Return the names of parameters and variables that hold memories, by annotations and assignments."""
    known = functions | {
        node.arg
        for node in ast.walk(part)
        if isinstance(node, ast.arg) and node.annotation and ast.unparse(node.annotation) in HELD
    }
    size = -1
    while size < len(known):
        size = len(known)
        for node in ast.walk(part):
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=value)
                    | ast.NamedExpr(target=ast.Name(id=name), value=value)
                    | ast.For(target=ast.Name(id=name), iter=value)
                ) if is_of_memories(value, known):
                    known.add(name)
    return known


def writes_in(source: str) -> Iterator[int]:
    """Yield the lines of a module that write memories."""
    tree = ast.parse(source)
    functions = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.returns and names_in(node.returns) >= {"QuerySet", "Memory"}
    }
    for part in tree.body:
        known = known_names(part, functions)
        for node in ast.walk(part):
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in WRITES:
                    if is_of_memories(value, known):
                        yield node.lineno


@pytest.mark.parametrize(
    "statement",
    [
        "Memory.objects.filter(pk=1).update(text='')",
        "Memory.objects.bulk_create([Memory()])",
        "session.memories.filter(pk=1).delete()",
        "found = Memory.objects.all()\n    found.update(text='')",
        "for one in list(Memory.objects.all()):\n        one.save(update_fields=['text'])",
        "QuerySet(Memory).filter(pk=1).delete()",
        "given.save()",
        "pending.memory.save()",
        "by_id = {one.memory_id: one for one in several}\n    by_id['a'].save()",
        "several.update(text='')",
        "copies(1).filter(pk=1).update(text='')",
    ],
)
def test_each_way_to_write_memories_is_found(statement: str) -> None:
    copies = "def copies(number) -> QuerySet[Memory]:\n    return Memory.objects.all()\n"
    source = f"{copies}def change(session, pending, given: Memory, several: QuerySet[Memory]):\n    {statement}\n"
    assert len(list(writes_in(source))) == 1


def test_no_module_outside_the_store_writes_memories() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for app in APPS
        for path in sorted((ROOT / app).rglob("*.py"))
        if "migrations" not in path.parts
        for line in writes_in(path.read_text())
    ]
    assert found == []


def test_the_database_cascades_no_memory() -> None:
    parents = [field for field in Memory._meta.get_fields() if isinstance(field, models.ForeignKey)]
    assert {field.name: field.remote_field.on_delete for field in parents} == {
        "user": models.PROTECT,
        "session": models.PROTECT,
    }
