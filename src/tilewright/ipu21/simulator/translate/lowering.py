"""From the plain Python of value and engine functions to LLVM instructions.

Those functions keep to a small part of Python: integers that fit 64 bits, doubles, truth values, pairs of
integers, arrays that are pointers, `if`, `while`, `for ... in range`, and calls of one another. That part is
translated here with the meaning numba gives it: 64-bit wrap-around, `math.floor` to an integer, single
precision widened before arithmetic.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from .ir import Builder, double_text
from .operands import (
    COMPARE,
    FLOAT,
    FLOAT_COMPARE,
    INTEGER,
    INTEGER_COMPARE,
    PLAIN,
    POINTERS,
    UNARY,
    Value,
    as_load,
    constant,
    is_text,
    log2_of,
)
from .single_instructions import SPECIAL
from .sources import hints_of, result_type, symbol, tree_of

Function = Callable[..., Any]

_TYPES = {"i": "i64", "f": "double", "b": "i1", "s": "float"}


class Lowering:
    """Expands functions into a builder. Calls of other functions go to `wanted`, or are expanded too."""

    def __init__(self, builder: Builder, wanted: dict[str, Function] | None) -> None:
        self.builder = builder
        self.wanted = wanted

    # ---- conversions

    def as_int(self, value: Value) -> str:
        if value.kind == "c":
            number = int(value.constant)
            return str(number if number < 1 << 63 else number - (1 << 64))
        if value.kind == "b":
            return self.builder.op(f"zext i1 {value.text} to i64")
        if value.kind in "fs":
            raise TypeError("a float where an integer is needed")
        if value.kind == "p":
            return self.builder.op(f"ptrtoint ptr {value.text} to i64")
        return value.text

    def as_double(self, value: Value) -> str:
        if value.kind == "c":
            return double_text(float(value.constant))
        if value.kind == "s":
            return self.builder.op(f"fpext float {value.text} to double")
        if value.kind in "ib":
            return self.builder.op(f"sitofp i64 {self.as_int(value)} to double")
        return value.text

    def as_bool(self, value: Value) -> str:
        if value.kind == "c":
            return "true" if value.constant else "false"
        if value.kind == "b":
            return value.text
        if value.kind == "i":
            return self.builder.op(f"icmp ne i64 {value.text}, 0")
        return self.builder.op(f"fcmp une double {self.as_double(value)}, {double_text(0.0)}")

    def typed(self, value: Value, kind: str) -> str:
        if kind == "f":
            return self.as_double(value)
        return self.as_bool(value) if kind == "b" else self.as_int(value)

    # ---- functions

    def call(self, function: Function, arguments: list[Value]) -> Value:
        """The value of a call."""
        special = SPECIAL.get(function)
        if special is not None:
            return special(self, arguments)
        if self.wanted is None or hints_of(function)["return"] in POINTERS:
            return self.expand(function, arguments)
        self.wanted[symbol(function)] = function
        texts = []
        for value, hint in zip(arguments, list(hints_of(function).values()), strict=False):
            if hint in POINTERS:
                texts.append(f"ptr {value.text}")
            elif hint is float:
                texts.append(f"double {self.as_double(value)}")
            elif hint is int or hint is bool:
                texts.append(f"i64 {self.as_int(value)}")
            else:
                texts += [f"i64 {self.as_int(item)}" for item in value.items]
        result = result_type(function)
        text = self.builder.op(f"call {result} @{symbol(function)}({', '.join(texts)})")
        if result == "i64":
            return Value("i", text)
        if result == "double":
            return Value("f", text)
        pair = tuple(
            Value("i", self.builder.op(f"extractvalue {result} {text}, {index}")) for index in range(2)
        )
        return Value("t", items=pair)

    def expand(self, function: Function, arguments: list[Value]) -> Value:
        """The function's body here and now."""
        return _Body(self, function, arguments).run()

    def define(self, function: Function, attributes: str = "") -> str:
        """A definition of the function, in a builder of its own. `self.builder` must be empty."""
        names: list[str] = []
        arguments: list[Value] = []
        for index, (name, hint) in enumerate(hints_of(function).items()):
            if name == "return":
                continue
            if hint in POINTERS:
                arguments.append(Value("p", f"%x{index}", element=POINTERS[hint]))
                names.append(f"ptr %x{index}")
            elif hint is float:
                arguments.append(Value("f", f"%x{index}"))
                names.append(f"double %x{index}")
            elif hint is int or hint is bool:
                arguments.append(Value("i", f"%x{index}"))
                names.append(f"i64 %x{index}")
            else:
                pair = (Value("i", f"%x{index}a"), Value("i", f"%x{index}b"))
                arguments.append(Value("t", items=pair))
                names += [f"i64 %x{index}a", f"i64 %x{index}b"]
        value = self.expand(function, arguments)
        result = result_type(function)
        if result == "double":
            self.builder.end(f"ret double {self.as_double(value)}")
        elif result == "i64":
            self.builder.end(f"ret i64 {self.as_int(value)}")
        else:
            text = "undef"
            for index, item in enumerate(value.items):
                text = self.builder.op(f"insertvalue {result} {text}, i64 {self.as_int(item)}, {index}")
            self.builder.end(f"ret {result} {text}")
        return self.builder.text(f"define {attributes} {result} @{symbol(function)}({', '.join(names)})")


class _Body:
    """One expansion of a function."""

    def __init__(self, lowering: Lowering, function: Function, arguments: list[Value]) -> None:
        self.lowering = lowering
        self.builder = lowering.builder
        self.function = function
        self.scope: dict[str, Any] = function.__globals__
        self.values: dict[str, Value] = {}
        self.places: dict[str, tuple[str, str]] = {}
        self.ends: list[str] = []
        self.assigned = {
            node.id
            for node in ast.walk(tree_of(function))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for argument, value in zip(tree_of(function).args.args, arguments, strict=True):
            if argument.arg in self.assigned:
                self.assign(argument.arg, value)
            else:
                self.values[argument.arg] = value
        self.done = self.builder.name("done")
        result = hints_of(function)["return"]
        if result in (int, bool):
            self.results = [("i", self.builder.alloca("i64"))]
        elif result is float:
            self.results = [("f", self.builder.alloca("double"))]
        elif result in POINTERS:
            self.results = [("p", "")]
        else:
            self.results = [("i", self.builder.alloca("i64")), ("i", self.builder.alloca("i64"))]
        self.element = POINTERS.get(result, ("", ""))
        self.returned = Value("p")

    def run(self) -> Value:
        body = tree_of(self.function).body
        statements = [node for node in body if not is_text(node)]
        if len(statements) == 1 and isinstance(statements[0], ast.Return):
            # Nothing but a value: no result variable needed.
            only = statements[0].value
            assert only is not None
            return self.normal(self.value(only))
        self.block(body)
        self.builder.label(self.done)
        if self.results[0][0] == "p":
            return self.returned
        values = [Value(kind, self.builder.load(_TYPES[kind], place)) for kind, place in self.results]
        return values[0] if len(values) == 1 else Value("t", items=tuple(values))

    def normal(self, value: Value) -> Value:
        """A returned value in the annotated type."""
        kind = self.results[0][0]
        if kind == "p" or value.kind == "t" or value.kind == "c":
            return value
        if kind == "i" and value.kind == "b":
            return value
        return Value(kind, self.lowering.typed(value, kind))

    # ---- statements

    def block(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if is_text(node) or isinstance(node, ast.Pass):
            return
        if isinstance(node, ast.Return):
            self.finish(node)
        elif isinstance(node, ast.Assign):
            self.store(node.targets[0], self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            left = ast.copy_location(as_load(node.target), node)
            self.store(node.target, self.binary(node.op, self.value(left), self.value(node.value)))
        elif isinstance(node, ast.AnnAssign):
            assert node.value is not None
            self.store(node.target, self.value(node.value))
        elif isinstance(node, ast.If):
            self.conditional(node)
        elif isinstance(node, ast.While):
            self.loop(node)
        elif isinstance(node, ast.For):
            self.count(node)
        elif isinstance(node, ast.Expr):
            self.value(node.value)
        elif isinstance(node, ast.Break):
            self.builder.jump(self.ends[-1])
        else:
            raise TypeError(f"{self.function.__name__}: {ast.dump(node)[:80]}")

    def finish(self, node: ast.Return) -> None:
        assert node.value is not None
        value = self.value(node.value)
        if self.results[0][0] == "p":
            self.returned = value
        else:
            items = value.items if value.kind == "t" else (value,)
            for (kind, place), item in zip(self.results, items, strict=True):
                self.builder.store(_TYPES[kind], self.lowering.typed(item, kind), place)
        self.builder.jump(self.done)

    def conditional(self, node: ast.If) -> None:
        test = self.value(node.test)
        if test.kind == "c":
            self.block(node.body if test.constant else node.orelse)
            return
        yes, no, end = (self.builder.name(hint) for hint in ("yes", "no", "end"))
        self.builder.branch(self.lowering.as_bool(test), yes, no if node.orelse else end)
        self.builder.label(yes)
        self.block(node.body)
        if node.orelse:
            self.builder.jump(end)
            self.builder.label(no)
            self.block(node.orelse)
        self.builder.label(end)

    def loop(self, node: ast.While) -> None:
        head, body, end = (self.builder.name(hint) for hint in ("head", "body", "end"))
        self.builder.label(head)
        self.builder.branch(self.lowering.as_bool(self.value(node.test)), body, end)
        self.builder.label(body)
        self.ends.append(end)
        self.block(node.body)
        self.ends.pop()
        self.builder.jump(head)
        self.builder.label(end)

    def count(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        if isinstance(node.iter, ast.Tuple):
            for item in node.iter.elts:
                self.values[node.target.id] = self.value(item)
                self.block(node.body)
            return
        assert isinstance(node.iter, ast.Call)
        limits = [self.value(item) for item in node.iter.args]
        first, stop = (limits[0], limits[1]) if len(limits) > 1 else (constant(0), limits[0])
        step = int(limits[2].constant) if len(limits) == 3 else 1
        if first.kind == "c" and stop.kind == "c" and len(range(first.constant, stop.constant, step)) <= 2:
            # The counter stays a constant, as indices in short loops should.
            for index in range(first.constant, stop.constant, step):
                self.values[node.target.id] = constant(index)
                self.block(node.body)
            return
        self.values.pop(node.target.id, None)
        end_text = self.lowering.as_int(stop)
        counter = self.builder.alloca("i64")
        self.builder.store("i64", self.lowering.as_int(first), counter)
        head, body, end = (self.builder.name(hint) for hint in ("head", "body", "end"))
        self.builder.label(head)
        index_text = self.builder.load("i64", counter)
        self.builder.branch(self.builder.op(f"icmp slt i64 {index_text}, {end_text}"), body, end)
        self.builder.label(body)
        self.assign(node.target.id, Value("i", index_text))
        self.block(node.body)
        self.builder.store("i64", self.builder.op(f"add i64 {index_text}, {step}"), counter)
        self.builder.jump(head)
        self.builder.label(end)

    # ---- places

    def assign(self, name: str, value: Value) -> None:
        if value.kind in "pt":
            self.values[name] = value
            if value.kind == "t":
                for index, item in enumerate(value.items):
                    self.assign(f"{name}.{index}", item)
            return
        kind = value.kind
        if kind == "c":
            kind = {bool: "b", int: "i", float: "f"}[type(value.constant)]
        known = self.places.get(name)
        if known is None:
            place = self.builder.alloca(_TYPES[kind])
            known = self.places[name] = (kind, place)
        kind, place = known
        if kind == "s" and value.kind != "s":
            raise TypeError(f"{self.function.__name__}: {name} changes its type")
        text = value.text if kind == "s" else self.lowering.typed(value, kind)
        self.builder.store(_TYPES[kind], text, place)

    def store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Tuple):
            for item, part in zip(target.elts, value.items, strict=True):
                self.store(item, part)
        elif isinstance(target, ast.Subscript):
            array = self.value(target.value)
            kind, reading = array.element
            place = self.builder.at(array.text, kind, self.lowering.as_int(self.value(target.slice)))
            if reading == "float":
                self.builder.store(kind, self._single(value, kind), place)
                return
            text = self.lowering.as_int(value)
            if kind != "i64":
                text = self.builder.op(f"trunc i64 {text} to {kind}")
            self.builder.store(kind, text, place)
        else:
            raise TypeError(ast.dump(target)[:80])

    def _single(self, value: Value, kind: str) -> str:
        if kind == "double":
            return self.lowering.as_double(value)
        if value.kind == "s":
            return value.text
        return self.builder.op(f"fptrunc double {self.lowering.as_double(value)} to float")

    # ---- expressions

    def value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Attribute):
            return constant(getattr(self._object(node.value), node.attr))
        if isinstance(node, ast.Tuple):
            return Value("t", items=tuple(self.value(item) for item in node.elts))
        if isinstance(node, ast.BinOp):
            return self.binary(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node.op, self.value(node.operand))
        if isinstance(node, ast.BoolOp):
            return self.boolean(node)
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.IfExp):
            return self.choice(node)
        if isinstance(node, ast.Subscript):
            return self.element_of(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise TypeError(f"{self.function.__name__}: {ast.dump(node)[:80]}")

    def name(self, name: str) -> Value:
        if name in self.values:
            value = self.values[name]
            if value.kind == "t" and f"{name}.0" in self.places:
                return Value(
                    "t", items=tuple(self.name(f"{name}.{index}") for index in range(len(value.items)))
                )
            return value
        if name in self.places:
            kind, place = self.places[name]
            return Value(kind, self.builder.load(_TYPES[kind], place))
        return constant(self.scope[name])

    def _object(self, node: ast.expr) -> Any:
        assert isinstance(node, ast.Name)
        return self.scope[node.id]

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        if left.kind == "c" and right.kind == "c":
            return constant(PLAIN[type(op)](left.constant, right.constant))
        floating = any(v.kind in "fs" or isinstance(v.constant, float) for v in (left, right))
        if floating or isinstance(op, ast.Div):
            name = FLOAT[type(op)]
            a, b = self.lowering.as_double(left), self.lowering.as_double(right)
            return Value("f", self.builder.op(f"{name} double {a}, {b}"))
        a, b = self.lowering.as_int(left), self.lowering.as_int(right)
        if isinstance(op, ast.FloorDiv) and right.kind == "c" and right.constant > 0:
            return Value("i", self.builder.op(f"ashr i64 {a}, {log2_of(right.constant)}"))
        if isinstance(op, ast.Mod):
            if right.kind == "c" and right.constant & (right.constant - 1) == 0:
                return Value("i", self.builder.op(f"and i64 {a}, {right.constant - 1}"))
            # Only of numbers that are not negative.
            return Value("i", self.builder.op(f"urem i64 {a}, {b}"))
        return Value("i", self.builder.op(f"{INTEGER[type(op)]} i64 {a}, {b}"))

    def unary(self, op: ast.unaryop, value: Value) -> Value:
        if value.kind == "c":
            return constant(UNARY[type(op)](value.constant))
        if isinstance(op, ast.Not):
            return Value("b", self.builder.op(f"xor i1 {self.lowering.as_bool(value)}, true"))
        if isinstance(op, ast.Invert):
            return Value("i", self.builder.op(f"xor i64 {self.lowering.as_int(value)}, -1"))
        if value.kind in "fs":
            return Value("f", self.builder.op(f"fneg double {self.lowering.as_double(value)}"))
        return Value("i", self.builder.op(f"sub i64 0, {self.lowering.as_int(value)}"))

    def boolean(self, node: ast.BoolOp) -> Value:
        """Later operands may be undefined where an earlier one decides, so calls with effects get blocks."""
        stop_at = isinstance(node.op, ast.Or)
        result = self.builder.alloca("i1")
        end = self.builder.name("end")
        for index, operand in enumerate(node.values):
            value = self.value(operand)
            if value.kind == "c" and index < len(node.values) - 1:
                if bool(value.constant) == stop_at:
                    self.builder.store("i1", self.lowering.as_bool(value), result)
                    break
                continue
            text = self.lowering.as_bool(value)
            self.builder.store("i1", text, result)
            if index < len(node.values) - 1:
                more = self.builder.name("more")
                self.builder.branch(text, end if stop_at else more, more if stop_at else end)
                self.builder.label(more)
        self.builder.label(end)
        return Value("b", self.builder.load("i1", result))

    def comparison(self, node: ast.Compare) -> Value:
        operands = [self.value(item) for item in (node.left, *node.comparators)]
        texts = [
            self._compare(type(op), left, right)
            for op, left, right in zip(node.ops, operands, operands[1:], strict=False)
        ]
        if len(texts) == 1:
            return texts[0]
        together = "true"
        for item in texts:
            together = self.builder.op(f"and i1 {together}, {self.lowering.as_bool(item)}")
        return Value("b", together)

    def _compare(self, op: type[ast.cmpop], left: Value, right: Value) -> Value:
        if left.kind == "c" and right.kind == "c":
            return constant(COMPARE[op](left.constant, right.constant))
        if any(v.kind in "fs" or isinstance(v.constant, float) for v in (left, right)):
            name = FLOAT_COMPARE[op]
            a, b = self.lowering.as_double(left), self.lowering.as_double(right)
            return Value("b", self.builder.op(f"fcmp {name} double {a}, {b}"))
        a, b = self.lowering.as_int(left), self.lowering.as_int(right)
        return Value("b", self.builder.op(f"icmp {INTEGER_COMPARE[op]} i64 {a}, {b}"))

    def choice(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        if test.kind == "c":
            return self.value(node.body if test.constant else node.orelse)
        if isinstance(node.body, ast.Tuple) and isinstance(node.orelse, ast.Tuple):
            pairs = zip(node.body.elts, node.orelse.elts, strict=True)
            return Value("t", items=tuple(self.choice(ast.IfExp(node.test, a, b)) for a, b in pairs))
        yes, no, end = (self.builder.name(hint) for hint in ("yes", "no", "end"))
        self.builder.branch(self.lowering.as_bool(test), yes, no)
        self.builder.label(yes)
        one = self.value(node.body)
        before = len(self.builder.lines)
        self.builder.jump(end)
        self.builder.label(no)
        other = self.value(node.orelse)
        kind = self._common(one, other)
        place = self.builder.alloca(_TYPES[kind])
        self.builder.store(_TYPES[kind], self.lowering.typed(other, kind), place)
        self.builder.label(end)
        # The first value's store belongs before its jump.
        patch = Builder(_count=0)
        patch._count = self.builder._count
        text = Lowering(patch, self.lowering.wanted).typed(one, kind)
        patch.store(_TYPES[kind], text, place)
        self.builder._count = patch._count
        self.builder.lines[before:before] = patch.lines
        return Value(kind, self.builder.load(_TYPES[kind], place))

    @staticmethod
    def _common(one: Value, other: Value) -> str:
        def kind(value: Value) -> str:
            if value.kind == "c":
                return {bool: "b", int: "i", float: "f"}[type(value.constant)]
            return "f" if value.kind == "s" else value.kind

        kinds = {kind(one), kind(other)}
        if "f" in kinds:
            return "f"
        return "i" if "i" in kinds else "b"

    def element_of(self, node: ast.Subscript) -> Value:
        array = self.value(node.value)
        index = self.value(node.slice)
        if array.kind == "t":
            return array.items[int(index.constant)]
        kind, reading = array.element
        place = self.builder.at(array.text, kind, self.lowering.as_int(index))
        text = self.builder.load(kind, place)
        if reading == "float":
            return Value("s" if kind == "float" else "f", text)
        if kind == "i64":
            return Value("i", text)
        extension = "zext" if reading == "unsigned" else "sext"
        return Value("i", self.builder.op(f"{extension} {kind} {text} to i64"))

    def call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute):
            module = self._object(node.func.value)
            assert isinstance(module, ModuleType) and module is math
            return self.mathematics(node.func.attr, [self.value(item) for item in node.args])
        assert isinstance(node.func, ast.Name)
        arguments = [self.value(item) for item in node.args]
        name = node.func.id
        if name in self.scope and isinstance(self.scope[name], FunctionType):
            return self.lowering.call(self.scope[name], arguments)
        return self.builtin(name, arguments)

    def builtin(self, name: str, arguments: list[Value]) -> Value:
        first = arguments[0]
        if name == "int":
            if first.kind in "fs":
                text = self.lowering.as_double(first)
                return Value("i", self.builder.op(f"fptosi double {text} to i64"))
            return first if first.kind == "c" else Value("i", self.lowering.as_int(first))
        if name == "float":
            return Value("f", self.lowering.as_double(first))
        if name == "bool":
            return Value("b", self.lowering.as_bool(first))
        if name == "abs":
            if first.kind in "fs":
                return self.mathematics("fabs", arguments)
            text = self.lowering.as_int(first)
            return Value("i", self.builder.call("i64", "llvm.abs.i64", f"i64 {text}, i1 false"))
        if name in ("min", "max"):
            a, b = (self.lowering.as_int(item) for item in arguments)
            return Value("i", self.builder.call("i64", f"llvm.s{name}.i64", f"i64 {a}, i64 {b}"))
        raise TypeError(f"{self.function.__name__}: call of {name}")

    def mathematics(self, name: str, arguments: list[Value]) -> Value:
        texts = ", ".join(f"double {self.lowering.as_double(item)}" for item in arguments)
        if name == "tanh":
            return Value("f", self.builder.call("double", "tanh", texts))
        result = self.builder.call("double", f"llvm.{name}.f64", texts)
        if name in ("floor", "ceil"):
            return Value("i", self.builder.op(f"fptosi double {result} to i64"))
        return Value("f", result)
