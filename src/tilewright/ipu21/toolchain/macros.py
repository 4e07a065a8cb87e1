"""Macros and repetitions: headers, arguments, and substitution into body statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from .diagnostics import SourceFault
from .statements import CutFault, Expansion, Statement, cut_statements

MAXIMUM_NESTING = 100
MAXIMUM_STATEMENTS = 2_000_000
"""Statements one source may expand to; stops endless recursion."""

_PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)(?::(req|vararg))?\s*")
_USE = re.compile(r"\\(@|\+|\(\)|[A-Za-z_]\w*)")
_LOCAL = re.compile(r"LOCAL\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_JOINING = "+-*/&|^~!<>="
"""Operators beside which a blank does not end an argument (LLVM)."""


Evaluate = Callable[[str, int], tuple[str, int]]
"""Value of the expression at a position of a text, in decimal, and the position behind it. Where one is
given, arguments are read in the alternate syntax."""


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


def parse_parameters(text: str, start: int, evaluate: Evaluate | None = None) -> tuple[Parameter, ...]:
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
            default, position = _argument(text, position + 1, evaluate)
        parameters.append(Parameter(name, default, kind))
        if position < len(text) and text[position] == ",":
            position += 1
    return tuple(parameters)


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _argument(text: str, start: int, evaluate: Evaluate | None = None) -> tuple[str, int]:
    """One argument from `start`, up to a comma or a blank that separates. Returns it and the position behind
    it.
    """
    begin = position = _after_blanks(text, start)
    length = len(text)
    if evaluate is not None:
        named = _NAMED.match(text, begin)
        value = begin if named is None else _after_blanks(text, named.end())
        if value < length and text[value] in "<'%":
            found, position = _alternate_argument(text, value, evaluate)
            return text[begin:value] + found, _after_blanks(text, position)
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
        elif character == "(":
            depth += 1
        elif character == ")":
            depth = max(depth - 1, 0)
        elif depth == 0 and character == ",":
            break
        elif depth == 0 and character.isspace():
            after = _after_blanks(text, position)
            before = text[position - 1] if position > begin else ""
            if after >= length or text[after] == ",":
                return _unquoted(text[begin:position]), after
            if before not in _JOINING and text[after] not in _JOINING:
                return _unquoted(text[begin:position]), after
            position = after
            continue
        position += 1
    return _unquoted(text[begin:position].rstrip()), position


def _alternate_argument(text: str, start: int, evaluate: Evaluate) -> tuple[str, int]:
    """`<text>` and `'text'`, in which `!` makes the next character an ordinary one, or `%expression`."""
    opening = text[start]
    if opening == "%":
        return evaluate(text, start + 1)
    closing = ">" if opening == "<" else "'"
    found: list[str] = []
    depth, position = 1, start + 1
    while position < len(text):
        character = text[position]
        if character == "!" and position + 1 < len(text):
            found.append(text[position + 1])
            position += 2
            continue
        if character == closing:
            depth -= 1
            if depth == 0:
                return "".join(found), position + 1
        elif character == opening:
            depth += 1
        found.append(character)
        position += 1
    raise SourceFault(f"the string has no closing {closing}", start)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('\\"', ""):
        return text[1:-1]
    return text


def split_arguments(text: str, start: int, evaluate: Evaluate | None = None) -> list[tuple[str, int]]:
    """Arguments of a call with where each starts: by commas, or by blanks that do not belong to an
    expression. Raises SourceFault for a string of the alternate syntax that is not closed.
    """
    arguments: list[tuple[str, int]] = []
    position = start
    while position < len(text):
        begin = position
        argument, position = _argument(text, position, evaluate)
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


def bind_arguments(macro: Macro, text: str, start: int, evaluate: Evaluate | None = None) -> dict[str, str]:
    """Parameter name -> replacement for a call. Raises SourceFault for too many, missing or unknown
    arguments.
    """
    bound: dict[str, str] = {}
    names = [parameter.name for parameter in macro.parameters]
    index = 0
    position = start
    for argument, offset in split_arguments(text, start, evaluate):
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


@dataclass(frozen=True, slots=True)
class Call:
    """One expansion: what stands for each parameter, the number of the call (`\\@`), how often this macro or
    repetition was expanded before (`\\+`), and in the alternate syntax where names for `LOCAL` come from.
    """

    replacements: Mapping[str, str]
    serial: int
    count: int = 0
    fresh: Callable[[], str] | None = None


def _alternate_use(names: Collection[str]) -> re.Pattern[str]:
    """In the alternate syntax a name alone is replaced too, and `&` sets it off from what it joins (GNU)."""
    if not names:
        return _USE
    listed = "|".join(map(re.escape, names))
    return re.compile(rf"{_USE.pattern}|&?(?<![\w.$])(?:{listed})(?![\w.$])&?")


def expand(
    body: Sequence[Statement], call: Call, expansion: Expansion
) -> tuple[list[Statement], list[CutFault]]:
    """Body statements with `\\name`, `\\@`, `\\+` and `\\()` (nothing) replaced.

    Names that are no parameter stay, since they may belong to an inner macro or repetition.
    """
    replacements = dict(call.replacements)

    def replace(match: re.Match[str]) -> str:
        name = match.group(1) or match.group().strip("&")
        if name == "@":
            return str(call.serial)
        if name == "+":
            return str(call.count)
        if name == "()":
            return ""
        return replacements.get(name, match.group())

    pattern = _USE if call.fresh is None else _alternate_use(replacements)
    statements: list[Statement] = []
    faults: list[CutFault] = []
    for statement in body:
        if call.fresh is not None:
            locals_ = _LOCAL.fullmatch(statement.text)
            if locals_ is not None:
                replacements.update({name.strip(): call.fresh() for name in locals_.group(1).split(",")})
                pattern = _alternate_use(replacements)
                continue
        elif "\\" not in statement.text:
            statements.append(Statement(statement.text, statement.line, statement.column, expansion))
            continue
        cut, wrong = cut_statements(
            pattern.sub(replace, statement.text),
            line=statement.line,
            column=statement.column,
            expansion=expansion,
        )
        statements += cut
        faults += wrong
    return statements, faults
