"""Guards in Python: conditions of refusals, terms of checks, filters, limits, alignment, wishes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutation.mutant import Edit, File, Scope

ALIGNING = ("align_up", "next_element_boundary")
"""Functions that only move an address or size up."""
TAILS = ("tail", "access_tail")
"""Fields that say how much is read behind an operand."""
WISHES = {
    "interleaved": "False",
    "prefer_interleaved": "False",
    "apart": "frozenset()",
    "prefer_apart": "frozenset()",
    "first": "0",
    "last": "0",
}
"""Arguments of a `Request` to the placer, and what stands for none."""


def condition_edits(
    file: File, *, every_branch: bool = False, limits: bool = False, masks: bool = False
) -> Iterator[tuple[Scope, Edit]]:
    """(scope, edit) of every guard.

    Args:
        every_branch: all `if`s and conditional expressions are rules, whatever they lead to.
        limits: `max`, `min`, `np.maximum`, `np.minimum` are rules.
        masks: `&` and `|` of comparisons are checks too, of many things at once.
    """
    for scope, node in file.scopes():
        for edit in _edits(file, node, every_branch, limits):
            if masks or not isinstance(edit.node, ast.BinOp) or not edit.is_term:
                yield scope, edit


def _edits(file: File, node: ast.AST, every_branch: bool, limits: bool) -> Iterator[Edit]:
    match node:
        case ast.If(test=test, body=body):
            if every_branch or _refuses(body[-1]):
                yield Edit(test, "False", "never", test)
                yield from _terms(file, test)
        case ast.IfExp(test=test) if every_branch:
            yield Edit(test, "False", "never", test)
            yield from _terms(file, test)
        case ast.While(test=test) if every_branch:
            yield from _terms(file, test)
        case ast.comprehension(ifs=filters):
            for test in filters:
                yield Edit(test, "True", "unfiltered", test)
                yield from _terms(file, test)
        case ast.FunctionDef(returns=ast.Name(id="bool")):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from _terms(file, inner.value)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            if isinstance(value, ast.BoolOp | ast.Compare | ast.BinOp):
                yield from _terms(file, value)
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in ALIGNING:
            yield Edit(node, file.text(first), "unaligned", node)
        case ast.Call(func=function, args=[_, _, *_] as arguments) if limits and _is_limit(function):
            for dropped in arguments:
                if not any(isinstance(argument, ast.Starred) for argument in arguments):
                    yield _without(file, node, arguments, dropped)
        case ast.Call(func=ast.Name(id="Request"), keywords=keywords):
            for keyword in keywords:
                if keyword.arg in WISHES:
                    yield Edit(keyword.value, WISHES[keyword.arg], f"no {keyword.arg}", keyword.value)
        case ast.BinOp(op=ast.Mult(), left=ast.BinOp(op=ast.FloorDiv(), left=sum_, right=unit), right=again):
            if ast.dump(unit) == ast.dump(again) and isinstance(sum_, ast.BinOp):
                while isinstance(sum_.left, ast.BinOp) and isinstance(sum_.op, ast.Add | ast.Sub):
                    sum_ = sum_.left
                yield Edit(node, file.text(sum_.left), "unaligned", node)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            for tail, rest in ((left, right), (right, left)):
                if isinstance(tail, ast.Attribute) and tail.attr in TAILS:
                    yield Edit(node, file.text(rest), "no tail in", node)


def _refuses(statement: ast.stmt) -> bool:
    """True for the end of a branch that turns something down or passes it over."""
    match statement:
        case ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Return(value=value):
            return value is None or _is_nothing(value)
        case ast.Expr(value=ast.Yield(value=ast.Call(func=ast.Name(id="Conflict")))):
            return True
    return False


def _is_nothing(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(map(_is_nothing, parts))
        case ast.Dict(keys=keys):
            return not keys
    return False


def _is_limit(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="max" | "min"):
            return True
        case ast.Attribute(value=ast.Name(id="np"), attr="maximum" | "minimum"):
            return True
    return False


def _without(file: File, call: ast.Call, arguments: list[ast.expr], dropped: ast.expr) -> Edit:
    rest = [file.text(argument) for argument in arguments if argument is not dropped]
    keywords = [file.text(keyword) for keyword in call.keywords if keyword.arg == "key"]
    new = rest[0] if len(rest) == 1 else f"{file.text(call.func)}({', '.join([*rest, *keywords])})"
    return Edit(call, f"({new})", f"no {file.text(dropped)} in", call)


def _terms(file: File, test: ast.AST) -> Iterator[Edit]:
    """The check with each operand of `and`, `or`, `&`, `|` between comparisons, or one side of a chain, left
    out."""
    for node in ast.walk(test):
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            continue
        if isinstance(node, ast.BoolOp):
            word = "and" if isinstance(node.op, ast.And) else "or"
            for dropped in node.values:
                rest = [f"({file.text(value)})" for value in node.values if value is not dropped]
                yield Edit(node, f"({f' {word} '.join(rest)})", f"no {_line(file, dropped)} in", node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            if any(isinstance(side, ast.Compare) for side in (node.left, node.right)):
                for dropped, kept in ((node.left, node.right), (node.right, node.left)):
                    what = f"no {_line(file, dropped)} in"
                    yield Edit(node, f"({file.text(kept)})", what, node, is_term=True)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            begin, _ = file.span(node.comparators[0])
            _, end = file.span(node)
            upper = file.data[begin:end].decode()
            yield Edit(node, f"({upper})", "no lower end in", node)
            begin, _ = file.span(node)
            _, end = file.span(node.comparators[-2])
            yield Edit(node, f"({file.data[begin:end].decode()})", "no upper end in", node)


def _line(file: File, node: ast.AST) -> str:
    return " ".join(file.text(node).split())
