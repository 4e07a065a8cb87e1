"""Directives that steer the assembler itself: conditions, macros, repetitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .diagnostics import SourceFault
from .directives import Arguments
from .expressions import evaluate
from .macros import (
    MAXIMUM_STATEMENTS,
    Call,
    Macro,
    bind_arguments,
    expand,
    parse_parameters,
    split_arguments,
)
from .statements import Expansion, Statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from .assembler import Assembler

_NAME = re.compile(r"\s*([A-Za-z_.][\w.$]*)\s*,?")

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    ".if": lambda value: value != 0,
    ".ifne": lambda value: value != 0,
    ".ifeq": lambda value: value == 0,
    ".ifgt": lambda value: value > 0,
    ".ifge": lambda value: value >= 0,
    ".iflt": lambda value: value < 0,
    ".ifle": lambda value: value <= 0,
}
_DEFINED = frozenset((".ifdef", ".ifndef", ".ifnotdef"))
_TEXTS = frozenset((".ifc", ".ifnc"))
_STRINGS = frozenset((".ifeqs", ".ifnes"))
_BLANK = frozenset((".ifb", ".ifnb"))
CONDITIONS = frozenset((*_COMPARISONS, *_DEFINED, *_TEXTS, *_STRINGS, *_BLANK))
BRANCHES = frozenset((".else", ".elseif", ".endif"))
_REPETITIONS = frozenset((".rept", ".rep", ".irp", ".irpc"))
COLLECTORS = {
    ".macro": (frozenset((".macro",)), frozenset((".endm", ".endmacro"))),
    **dict.fromkeys(_REPETITIONS, (_REPETITIONS, frozenset((".endr",)))),
}
_ENDS = {".endm": ".macro", ".endmacro": ".macro", ".endr": ".rept or .irp"}


def condition_of(assembler: Assembler, word: str, text: str, start: int) -> bool:
    """Whether an `.if...` holds. Raises SourceFault when that cannot be known here."""
    # A directive may be followed by a comma (known: published kernels do it).
    start += len(text[start:]) - len(text[start:].lstrip(" \t,"))
    rest = text[start:].strip()
    if word in _BLANK:
        return (not rest.strip('"')) == (word == ".ifb")
    if word in _TEXTS:
        first, second = _two_texts(text, start)
        return (first == second) == (word == ".ifc")
    if word in _STRINGS:
        strings = Arguments(assembler, text, start)
        left = strings.string()
        strings.comma()
        right = strings.string()
        strings.finish()
        return (left == right) == (word == ".ifeqs")
    if word in _DEFINED:
        symbol = assembler.symbols.symbols.get(rest)
        return (symbol is not None and symbol.defined) == (word == ".ifdef")
    arguments = Arguments(assembler, text, start)
    value = arguments.expression()
    arguments.finish()
    if not isinstance(value, int):
        value_now = evaluate(value)
        if not isinstance(value_now, int):
            raise SourceFault(
                "the condition depends on an address", start, hint="only values known here can decide"
            )
        value = value_now
    return _COMPARISONS[word](value)


_TEXT = re.compile(r"""\s*('[^']*'|(?:"(?:\\.|[^"\\])*"|[^,"])*)""")


def _two_texts(text: str, start: int) -> tuple[str, str]:
    """What `.ifc` compares: up to the first comma and the rest; single quotes keep what is between them."""
    match = _TEXT.match(text, start)
    end = match.end() if match is not None else start
    comma = text[end:].lstrip()
    if comma and comma[0] != ",":
        # Blanks alone separate them as well (known: published kernels do it).
        parts = split_arguments(text, start)
        if len(parts) != 2:
            raise SourceFault("two texts are compared", start, hint="put a comma between them")
        return parts[0][0], parts[1][0]
    return _bare(text[start:end]), _bare(comma[1:])


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def run_control(assembler: Assembler, word: str, text: str, start: int, statement: Statement) -> None:
    """Carry out a control directive. Raises SourceFault."""
    conditions = assembler.conditions
    if word in CONDITIONS:
        if not conditions.active:
            conditions.open_inactive(statement)
            return
        try:
            holds = condition_of(assembler, word, text, start)
        except SourceFault:
            # Keep `.endif` paired; neither branch is assembled.
            conditions.open_inactive(statement)
            raise
        conditions.open(statement, holds)
    elif word in BRANCHES:
        if word == ".else":
            conditions.otherwise()
        elif word == ".endif":
            conditions.close()
        else:
            conditions.elseif(conditions.wants_elseif and condition_of(assembler, ".if", text, start))
    elif word in COLLECTORS:
        openers, closers = COLLECTORS[word]
        body = assembler.collect(statement, word, openers, closers)
        if conditions.active:
            if word == ".macro":
                _define(assembler, text, start, body)
            else:
                _repeat(assembler, word, text, start, body, statement)
    elif conditions.active:
        if word in _ENDS:
            raise SourceFault(f"`{word}` without `{_ENDS[word]}`")
        if word == ".exitm":
            assembler.leave_macro()
        else:
            _purge(assembler, text[start:].strip(), start)


def _purge(assembler: Assembler, name: str, start: int) -> None:
    """Forget a macro: `.purgem`."""
    if assembler.macros.pop(name, None) is None:
        raise SourceFault(f"there is no macro {name}", start)
    assembler.calls_of.pop(name, None)


def _define(assembler: Assembler, text: str, start: int, body: list[Statement]) -> None:
    match = _NAME.match(text, start)
    if match is None:
        raise SourceFault("expected a macro name", start)
    name = match.group(1)
    if name in assembler.macros:
        raise SourceFault(f"macro {name} is already defined", match.start(1), hint="use .purgem first")
    parameters = parse_parameters(text, match.end(), assembler.alternate)
    assembler.macros[name] = Macro(name, parameters, tuple(body))


def call_macro(assembler: Assembler, macro: Macro, text: str, start: int, statement: Statement) -> None:
    """Queue the expansion of a macro call. Raises SourceFault for wrong arguments."""
    bound = bind_arguments(macro, text, start, assembler.alternate)
    count = assembler.calls_of.get(macro.name, 0)
    assembler.calls_of[macro.name] = count + 1
    serial = assembler.macro_calls
    assembler.macro_calls += 1
    call = Call(bound, serial, count, assembler.fresh_local if assembler.alternate else None)
    statements, faults = expand(macro.body, call, Expansion(f"macro {macro.name}", statement))
    assembler.sources.report_cuts(faults, statement)
    assembler.push(statements, statement, macro=True)


def _repeat(
    assembler: Assembler, word: str, text: str, start: int, body: list[Statement], statement: Statement
) -> None:
    rounds: list[dict[str, str]]
    if word in (".rept", ".rep"):
        arguments = Arguments(assembler, text, start)
        count = arguments.number("the number of repetitions", 0, MAXIMUM_STATEMENTS)
        arguments.finish()
        if count * len(body) > MAXIMUM_STATEMENTS:
            raise SourceFault(f"{count} repetitions of {len(body)} statements are too many", start)
        rounds = [{}] * count
    else:
        match = _NAME.match(text, start)
        if match is None:
            raise SourceFault("expected a parameter name", start)
        values = [value for value, _ in split_arguments(text, match.end(), assembler.alternate)]
        if word == ".irpc":
            values = list("".join(values))
        while values and not values[-1]:
            values.pop()  # a comma at the end begins nothing (LLVM; GNU would go round once more)
        rounds = [{match.group(1): value} for value in values]
    statements: list[Statement] = []
    fresh = assembler.fresh_local if assembler.alternate else None
    for count, replacements in enumerate(rounds):
        # `\@` belongs to the enclosing macro call, whose number was put in already.
        call = Call(replacements, assembler.macro_calls, count, fresh)
        expanded, faults = expand(body, call, Expansion(word, statement))
        assembler.sources.report_cuts(faults, statement)
        statements += expanded
    assembler.push(statements, statement, macro=False)
