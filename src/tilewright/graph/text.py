"""The graph as readable text, version 1. The data of constants lies beside it, in a safetensors file.

    tilewright graph 1
    graph digits {
      input %x : float32[360, 64]
      constant %w0 : float32[64, 128]
      %matmul_0 = matmul(%x, %w0) : float32[360, 128]  @ "model.py:12"
      %gelu_0 = gelu(%matmul_0, approximate="tanh") : float32[360, 128]
      output logits = %gelu_0
    }

One statement a line; `#` begins a comment. Inputs come first, then constants, operations, outputs. The
text after `@` is the line that a message about the operation points to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from tilewright.errors import GraphError, TilewrightError, UsageError
from tilewright.operators import operator
from tilewright.operators.operator import Attribute
from tilewright.tensor_type import TensorType

from .graph import Graph, Operation, Value
from .tokens import MAX_DIGITS, Token, Tokens

VERSION = 1


def print_graph(graph: Graph) -> str:
    """Text of `graph`. The same graph gives the same text on every machine."""
    lines = [f"tilewright graph {VERSION}", f"graph {graph.name} {{"]
    lines += [f"  input %{value.name} : {value.type}" for value in graph.inputs]
    lines += [f"  constant %{value.name} : {value.type}" for value, _ in graph.constants]
    lines += [f"  {_print_operation(operation)}" for operation in graph.operations]
    lines += [f"  output {name} = %{value.name}" for name, value in graph.outputs]
    return "\n".join([*lines, "}", ""])


def _print_operation(operation: Operation) -> str:
    arguments = [f"%{value.name}" for value in operation.operands]
    arguments += [f"{name}={_print_attribute(value)}" for name, value in operation.attributes.items()]
    place = f"  @ {json.dumps(operation.location)}" if operation.location else ""
    result = operation.result
    return f"%{result.name} = {operation.name}({', '.join(arguments)}) : {result.type}{place}"


def _print_attribute(value: Attribute) -> str:
    return json.dumps(value)


def parse_graph(
    source: str,
    constants: Mapping[str, NDArray[Any]] | Callable[[str, TensorType], NDArray[Any]],
    *,
    filename: str = "<string>",
) -> Graph:
    """Graph from its text and the data of its constants by name (or a function that gives it).

    Raises GraphError with file, line and column for anything wrong with the text, and for a constant that
    has no data or data of another type.
    """
    data = constants if callable(constants) else _lookup(constants)
    return _Parser(source, data, filename).parse()


def _lookup(constants: Mapping[str, NDArray[Any]]) -> Callable[[str, TensorType], NDArray[Any]]:
    def find(name: str, type_: TensorType) -> NDArray[Any]:
        if name not in constants:
            raise GraphError(f"no data for constant {name!r}")
        return constants[name]

    return find


class _Parser:
    def __init__(self, source: str, data: Callable[[str, TensorType], NDArray[Any]], filename: str) -> None:
        self._tokens = Tokens(source, filename)
        self._data = data
        self._values: dict[str, Value] = {}
        self._graph = Graph("")

    def parse(self) -> Graph:
        tokens = self._tokens
        tokens.skip_blank_lines()
        tokens.expect("tilewright")
        tokens.expect("graph")
        version = tokens.ahead
        if tokens.integer("the version of the text form") != VERSION:
            tokens.fail(
                f"version {version.text} of the text form is not known, this reads {VERSION}", version
            )
        tokens.end_of_line()
        tokens.skip_blank_lines()
        opening = tokens.expect("graph")
        self._graph.name = tokens.expect_kind("word", "the graph's name").text
        tokens.expect("{")
        tokens.end_of_line()
        while True:
            tokens.skip_blank_lines()
            if tokens.accept("}"):
                break
            self._statement()
            tokens.end_of_line()
        tokens.skip_blank_lines()
        tokens.expect_kind("end", "the end of the file")
        self._located(opening, self._graph.verify)
        return self._graph

    def _located(self, token: Token, action: Callable[..., Any], *arguments: Any) -> Any:
        """Run `action`, giving an error without a place the place of `token`."""
        try:
            return action(*arguments)
        except UsageError:  # a file beside the text, which the error names
            raise
        except TilewrightError as error:
            place = f"{self._tokens.filename}:{token.line}:{token.column}"
            error.where = place if error.where is None else f"{place} ({error.where})"
            raise

    def _statement(self) -> None:
        token = self._tokens.take()
        if token.kind == "value":
            self._operation(token)
        elif token.kind == "word" and token.text == "input":
            self._in_order(token, bool(self._graph.constants or self._graph.operations))
            self._graph.inputs.append(self._declaration())
        elif token.kind == "word" and token.text == "constant":
            self._in_order(token, bool(self._graph.operations))
            name = self._tokens.ahead
            value = self._declaration()
            array = self._located(name, self._data, value.name, value.type)
            self._graph.constants.append((value, array))
        elif token.kind == "word" and token.text == "output":
            self._graph.output_names.append(self._tokens.expect_kind("word", "the output's name").text)
            self._tokens.expect("=")
            self._graph.body.results.append(self._use())
        else:
            self._tokens.fail(f"expected input, constant, output or %value, found {token}", token)

    def _in_order(self, token: Token, late: bool) -> None:
        if late or self._graph.output_names:
            self._tokens.fail("inputs come first, then constants, operations, outputs", token)

    def _declaration(self) -> Value:
        name = self._tokens.expect_kind("value", "%name")
        self._tokens.expect(":")
        return self._define(name, self._type())

    def _define(self, token: Token, type_: TensorType) -> Value:
        name = token.text[1:]
        if name in self._values:
            self._tokens.fail(f"%{name} is defined twice", token)
        self._values[name] = Value(len(self._values), type_, name)
        return self._values[name]

    def _use(self) -> Value:
        token = self._tokens.expect_kind("value", "%name")
        if token.text[1:] not in self._values:
            self._tokens.fail(f"{token.text} is not defined above", token)
        return self._values[token.text[1:]]

    def _type(self) -> TensorType:
        tokens = self._tokens
        start = tokens.expect_kind("word", "an element type")
        tokens.expect("[")
        shape: list[int] = []
        if not tokens.accept("]"):
            shape.append(tokens.integer("an extent"))
            while tokens.accept(","):
                shape.append(tokens.integer("an extent"))
            tokens.expect("]")
        result: TensorType = self._located(start, TensorType, tuple(shape), start.text)
        return result

    def _operation(self, target: Token) -> None:
        tokens = self._tokens
        self._in_order(target, False)
        tokens.expect("=")
        name = tokens.expect_kind("word", "an operator's name")
        rule = self._located(name, operator, name.text)
        operands: list[Value] = []
        attributes: dict[str, Attribute] = {}
        tokens.expect("(")
        while not tokens.accept(")"):
            if operands or attributes:
                tokens.expect(",")
            if tokens.ahead.kind == "value" and not attributes:
                operands.append(self._use())
            else:
                self._attribute(attributes)
        tokens.expect(":")
        place = tokens.ahead
        stated = self._type()
        location = tokens.string("a quoted place") if tokens.accept("@") else ""
        resolved = self._located(name, rule.resolve, attributes)
        inferred = self._located(name, rule.infer, resolved, *(value.type for value in operands))
        if inferred != stated:
            tokens.fail(f"{name.text} gives {inferred}, the text says {stated}", place)
        result = self._define(target, stated)
        self._graph.operations.append(Operation(name.text, tuple(operands), (result,), resolved, location))

    def _attribute(self, attributes: dict[str, Attribute]) -> None:
        tokens = self._tokens
        name = tokens.expect_kind("word", "%operand or parameter=value")
        if name.text in attributes:
            tokens.fail(f"parameter {name.text!r} is given twice", name)
        tokens.expect("=")
        attributes[name.text] = self._attribute_value()

    def _attribute_value(self) -> Attribute:
        token = self._tokens.ahead
        if token.kind == "string":
            return self._tokens.string("a value")
        self._tokens.take()
        if token.kind == "word" and token.text in ("true", "false"):
            return token.text == "true"
        if token.kind != "number" or len(token.text) > MAX_DIGITS:
            self._tokens.fail(f"expected a string, a number, true or false, found {token}", token)
        return int(token.text) if token.text.lstrip("+-").isdigit() else float(token.text)
