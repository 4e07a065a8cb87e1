"""Macros and repetitions: headers, arguments, and substitution into body statements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .diagnostics import SourceFault
from .statements import CutFault, Expansion, Statement, cut_statements

MAXIMUM_NESTING = 100
MAXIMUM_STATEMENTS = 2_000_000
"""Statements one source may expand to; stops endless recursion."""

_PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)(?::(req|vararg))?\s*")
_USE = re.compile(r"\\(@|\(\)|[A-Za-z_]\w*)")
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_JOINING = "+-*/%&|^~!<>=:@,"


@dataclass(frozen=True, slots=True)
class Parameter:
    """`kind` is empty, `req` (an argument must be given) or `vararg` (takes all the rest)."""

    name: str
    default: str | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Macro:
    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]


def parse_parameters(text: str, start: int) -> tuple[Parameter, ...]:
    """Parameters of a `.macro` line from `start`, separated by commas or blanks. Raises SourceFault."""
    parameters: list[Parameter] = []
    position = start
    while position < len(text):
        match = _PARAMETER.match(text, position)
        if match is None:
            if not text[position:].strip():
                break
            raise SourceFault("expected a parameter name", position)
        name, kind = match.group(1), match.group(2) or ""
        if any(parameter.name == name for parameter in parameters):
            raise SourceFault(f"parameter {name} is given twice", match.start(1))
        if parameters and parameters[-1].kind == "vararg":
            raise SourceFault("nothing can follow a vararg parameter", match.start(1))
        position = match.end()
        default = None
        if position < len(text) and text[position] == "=":
            default, position = _argument(text, position + 1)
        parameters.append(Parameter(name, default, kind))
        if position < len(text) and text[position] == ",":
            position += 1
    return tuple(parameters)


def _argument(text: str, start: int) -> tuple[str, int]:
    """One argument from `start`, up to a comma or a blank that separates. Returns it and the position behind
    it.
    """
    position, length = start, len(text)
    while position < length and text[position].isspace():
        position += 1
    begin = position
    depth = 0
    quoted = False
    while position < length:
        character = text[position]
        if quoted:
            if character == "\\":
                position += 1
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth <= 0 and character == ",":
            break
        elif depth <= 0 and character.isspace():
            after = position
            while after < length and text[after].isspace():
                after += 1
            before = text[position - 1] if position > begin else ""
            if after >= length or text[after] == ",":
                return _unquoted(text[begin:position]), after
            if before not in _JOINING and text[after] not in _JOINING:
                return _unquoted(text[begin:position]), after
            position = after
            continue
        position += 1
    return _unquoted(text[begin:position].rstrip()), position


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('\\"', ""):
        return text[1:-1]
    return text


def split_arguments(text: str, start: int) -> list[tuple[str, int]]:
    """Arguments of a call with where each starts: by commas, or by blanks that do not belong to an
    expression.
    """
    arguments: list[tuple[str, int]] = []
    position = start
    while position < len(text):
        begin = position
        argument, position = _argument(text, position)
        if not argument and not text[begin:position].strip() and position >= len(text):
            if arguments and text[:begin].rstrip().endswith(","):
                arguments.append(("", begin))
            break
        arguments.append((argument, begin))
        if position < len(text) and text[position] == ",":
            position += 1
            if position >= len(text):
                arguments.append(("", position))
    return arguments


def bind_arguments(macro: Macro, text: str, start: int) -> dict[str, str]:
    """Parameter name -> replacement for a call. Raises SourceFault for too many, missing or unknown
    arguments.
    """
    bound: dict[str, str] = {}
    names = [parameter.name for parameter in macro.parameters]
    index = 0
    position = start
    for argument, offset in split_arguments(text, start):
        position = offset
        named = _NAMED.match(argument)
        if named and named.group(1) in names:
            bound[named.group(1)] = _unquoted(argument[named.end() :].strip())
            continue
        if index >= len(names):
            raise SourceFault(
                f"macro {macro.name} takes {len(names)} argument{'s' if len(names) != 1 else ''}",
                offset,
                hint=f"parameters: {', '.join(names)}" if names else "it has no parameters",
            )
        parameter = macro.parameters[index]
        if parameter.kind == "vararg":
            bound[parameter.name] = text[offset:].strip()
            break
        if argument:
            bound[parameter.name] = argument
        index += 1
    for parameter in macro.parameters:
        if parameter.name in bound:
            continue
        if parameter.kind == "req" and parameter.default is None:
            raise SourceFault(f"macro {macro.name} needs an argument for {parameter.name}", position)
        bound[parameter.name] = parameter.default or ""
    return bound


def expand(
    body: Sequence[Statement], replacements: Mapping[str, str], serial: int, expansion: Expansion
) -> tuple[list[Statement], list[CutFault]]:
    """Body statements with `\\name`, `\\@` (serial number of the call) and `\\()` (nothing) replaced.

    Names that are no parameter stay, since they may belong to an inner macro or repetition.
    """

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "@":
            return str(serial)
        if name == "()":
            return ""
        return replacements.get(name, match.group())

    statements: list[Statement] = []
    faults: list[CutFault] = []
    for statement in body:
        if "\\" not in statement.text:
            statements.append(Statement(statement.text, statement.line, statement.column, expansion))
            continue
        cut, wrong = cut_statements(
            _USE.sub(replace, statement.text),
            line=statement.line,
            column=statement.column,
            expansion=expansion,
        )
        statements += cut
        faults += wrong
    return statements, faults
