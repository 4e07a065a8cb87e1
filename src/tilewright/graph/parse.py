"""Reading the text form of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from tilewright.errors import GraphError, TilewrightError, UsageError
from tilewright.operators import operator
from tilewright.operators.parameter import Attribute
from tilewright.tensor_type import TensorType

from .graph import Graph, Operation, Region, Value
from .loop import REPEAT, argument_types, check_leaving, resolve_attributes
from .text import VERSION
from .tokens import MAX_DIGITS, Token, Tokens
from .verify import MAX_DEPTH


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
        self._names: set[str] = set()
        self._visible: dict[str, Value] = {}
        self._graph = Graph("")
        self._region = self._graph.body
        self._depth = 0

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
        if name in self._names:
            self._tokens.fail(f"%{name} is defined twice", token)
        value = Value(len(self._names), type_, name)
        self._names.add(name)
        self._visible[name] = value
        return value

    def _use(self) -> Value:
        token = self._tokens.expect_kind("value", "%name")
        name = token.text[1:]
        if name not in self._visible:
            inside = name in self._names
            self._tokens.fail(
                f"{token.text} {'belongs to a loop' if inside else 'is not defined'} above", token
            )
        return self._visible[name]

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

    def _types(self) -> list[TensorType]:
        types = [self._type()]
        while self._tokens.accept(","):
            types.append(self._type())
        return types

    def _operation(self, target: Token) -> None:
        tokens = self._tokens
        self._in_order(target, False)
        targets = [target]
        while tokens.accept(","):
            targets.append(tokens.expect_kind("value", "%name"))
        tokens.expect("=")
        name = tokens.expect_kind("word", "an operator's name")
        if name.text == REPEAT:
            self._loop(targets, name)
            return
        rule = self._located(name, operator, name.text)
        if len(targets) > 1:
            tokens.fail(f"{name.text} defines one value", targets[1])
        operands, attributes = self._arguments()
        tokens.expect(":")
        place = tokens.ahead
        stated = self._type()
        location = self._location()
        resolved = self._located(name, rule.resolve, attributes)
        settled, inferred = self._located(name, rule.settle, resolved, *(value.type for value in operands))
        if inferred != stated:
            tokens.fail(f"{name.text} gives {inferred}, the text says {stated}", place)
        result = self._define(target, stated)
        self._region.operations.append(Operation(name.text, tuple(operands), (result,), settled, location))

    def _loop(self, targets: list[Token], name: Token) -> None:
        tokens = self._tokens
        operands, attributes = self._arguments()
        tokens.expect(":")
        place = tokens.ahead
        stated = self._types()
        location = self._location()
        resolved = self._located(name, resolve_attributes, attributes)
        if len(stated) != len(targets):
            tokens.fail(f"{len(targets)} values are defined, {len(stated)} types are stated", place)
        if len(operands) < len(targets):
            tokens.fail(f"{len(targets)} values are carried, {len(operands)} have an initial value", name)
        if self._depth == MAX_DEPTH:
            tokens.fail(f"loops nest deeper than {MAX_DEPTH}", name)
        types = [value.type for value in operands]
        carried, iterated = types[: len(targets)], types[len(targets) :]
        expected = self._located(name, argument_types, resolved["count"], carried, iterated)
        if stated != carried:
            listed = ", ".join(map(str, carried))
            tokens.fail(f"repeat gives {listed}, the text says otherwise", place)
        region = self._loop_region(expected, len(carried))
        results = tuple(self._define(*pair) for pair in zip(targets, stated, strict=True))
        self._region.operations.append(
            Operation(REPEAT, tuple(operands), results, resolved, location, (region,))
        )

    def _loop_region(self, expected: list[TensorType], carried: int) -> Region:
        """From the opening brace to the closing one; what is defined inside is not visible afterwards."""
        tokens = self._tokens
        tokens.expect("{")
        tokens.end_of_line()
        around, visible = self._region, dict(self._visible)
        region = self._region = Region()
        self._depth += 1
        while True:
            tokens.skip_blank_lines()
            token = tokens.take()
            if token.kind == "word" and token.text in ("carried", "iterated"):
                self._argument(token, expected, carried)
            elif len(region.arguments) < len(expected):
                missing = "carried" if len(region.arguments) < carried else "iterated"
                tokens.fail(f"expected {missing} %name, found {token}", token)
            elif token.kind == "value":
                self._operation(token)
            elif token.kind == "word" and token.text == "next":
                break
            else:
                tokens.fail(f"expected %value or next, found {token}", token)
            tokens.end_of_line()
        region.results.append(self._use())
        while tokens.accept(","):
            region.results.append(self._use())
        tokens.end_of_line()
        tokens.skip_blank_lines()
        tokens.expect("}")
        self._located(token, check_leaving, expected[:carried], [value.type for value in region.results])
        self._depth -= 1
        self._region, self._visible = around, visible
        return region

    def _argument(self, token: Token, expected: list[TensorType], carried: int) -> None:
        tokens, region = self._tokens, self._region
        position = len(region.arguments)
        if position == len(expected) or region.operations:
            tokens.fail(f"the loop has no further {token.text} value", token)
        if token.text != ("carried" if position < carried else "iterated"):
            tokens.fail(f"expected {'carried' if position < carried else 'iterated'}, found {token}", token)
        place = tokens.ahead
        value = self._declaration()
        if value.type != expected[position]:
            tokens.fail(f"{value.name!r} is {expected[position]}, the text says {value.type}", place)
        region.arguments.append(value)

    def _location(self) -> str:
        return self._tokens.string("a quoted place") if self._tokens.accept("@") else ""

    def _arguments(self) -> tuple[list[Value], dict[str, Attribute]]:
        """Operands, then attributes, in parentheses."""
        tokens = self._tokens
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
        return operands, attributes

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
        if self._tokens.accept("["):
            return self._whole_numbers()
        self._tokens.take()
        if token.kind == "word" and token.text in ("true", "false"):
            return token.text == "true"
        if token.kind != "number" or len(token.text) > MAX_DIGITS:
            self._tokens.fail(f"expected a string, a number, [numbers], true or false, found {token}", token)
        return int(token.text) if token.text.lstrip("+-").isdigit() else float(token.text)

    def _whole_numbers(self) -> tuple[int, ...]:
        """The rest of a list of whole numbers, after its bracket."""
        tokens = self._tokens
        numbers: list[int] = []
        while not tokens.accept("]"):
            if numbers:
                tokens.expect(",")
            numbers.append(tokens.integer("a whole number", signed=True))
        return tuple(numbers)
