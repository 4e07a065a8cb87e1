"""Macros: definitions, and expansion with hide sets (a macro is not expanded inside its own expansion)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .faults import PreprocessorFault
from .tokens import Token, spell, tokenise

MAXIMUM_TOKENS = 1_000_000
"""Tokens one line may expand to."""


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for an object-like macro. `rest` is the last one if it takes all that is left.
    One with a `counter` stands for its next number.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    rest: str | None = None
    counter: Iterator[int] | None = None

    @property
    def variadic(self) -> bool:
        return self.rest is not None


def parse_define(text: str) -> Macro:
    """The macro behind `#define`. Raises PreprocessorFault."""
    tokens = tokenise(text.strip())
    if not tokens or tokens[0].kind != "name":
        raise PreprocessorFault("expected a macro name")
    name = tokens[0].text
    if name == "defined":
        raise PreprocessorFault("`defined` cannot be a macro")
    if len(tokens) < 2 or tokens[1].text != "(" or tokens[1].blank:
        return Macro(name, None, tuple(tokens[1:]))
    parameters: list[str] = []
    index = 2
    rest: str | None = None
    while index < len(tokens) and tokens[index].text != ")":
        token = tokens[index]
        if token.text == "...":
            rest = "__VA_ARGS__"
            parameters.append(rest)
            index += 1
            break
        if token.kind != "name" or token.text in parameters:
            raise PreprocessorFault(f"`{token.text}` is no new parameter name")
        parameters.append(token.text)
        index += 1
        if index < len(tokens) and tokens[index].text == "...":  # a name for all the rest (GNU)
            rest = token.text
            index += 1
            break
        if index < len(tokens) and tokens[index].text == ",":
            index += 1
    if index >= len(tokens) or tokens[index].text != ")":
        raise PreprocessorFault("expected `)` after the parameters")
    return Macro(name, tuple(parameters), tuple(tokens[index + 1 :]), rest)


def needs_more(tokens: list[Token], macros: Mapping[str, Macro]) -> bool:
    """True if a call of a function-like macro is still open at the end of the line."""
    for index, token in enumerate(tokens[:-1]):
        macro = macros.get(token.text) if token.kind == "name" else None
        if macro is None or macro.parameters is None or tokens[index + 1].text != "(":
            continue
        depth = 0
        for later in tokens[index + 1 :]:
            depth += {"(": 1, ")": -1}.get(later.text, 0)
            if depth == 0:
                break
        if depth > 0:
            return True
    return False


def expand(tokens: list[Token], macros: Mapping[str, Macro]) -> list[Token]:
    """Everything expanded. Raises PreprocessorFault for wrong calls and endless growth."""
    result: list[Token] = []
    pending = tokens[::-1]
    budget = MAXIMUM_TOKENS
    while pending:
        budget -= 1
        if budget < 0 or len(pending) > MAXIMUM_TOKENS:
            raise PreprocessorFault(f"the line expands to over {MAXIMUM_TOKENS} tokens")
        token = pending.pop()
        macro = macros.get(token.text) if token.kind == "name" and token.text not in token.hidden else None
        if macro is None:
            result.append(token)
            continue
        if macro.counter is not None:
            result.append(Token("number", str(next(macro.counter)), token.blank))
            continue
        if macro.parameters is None:
            hidden = token.hidden | {macro.name}
            replaced = _substitute(macro, {}, {}, hidden)
        else:
            if not pending or pending[-1].text != "(":
                result.append(token)
                continue
            arguments, closing = _arguments(macro, pending)
            hidden = (token.hidden & closing.hidden) | {macro.name}
            raw = dict(zip(macro.parameters, arguments, strict=True))
            used = {name: expand(value, macros) for name, value in raw.items()}
            replaced = _substitute(macro, raw, used, hidden)
        if replaced:
            replaced[0] = replaced[0]._replace(blank=token.blank)
        elif pending and token.blank:
            pending[-1] = pending[-1]._replace(blank=True)
        pending.extend(reversed(replaced))
    return result


def _arguments(macro: Macro, pending: list[Token]) -> tuple[list[list[Token]], Token]:
    """Arguments of a call whose `(` is next; taken off `pending`. Also the closing parenthesis."""
    assert macro.parameters is not None
    pending.pop()
    arguments: list[list[Token]] = [[]]
    depth = 0
    while pending:
        token = pending.pop()
        if token.text == ")" and depth == 0:
            if not macro.parameters and arguments == [[]]:
                arguments = []
            if macro.variadic and len(arguments) == len(macro.parameters) - 1:
                arguments.append([])
            if len(arguments) != len(macro.parameters):
                raise PreprocessorFault(
                    f"macro {macro.name} takes {len(macro.parameters)} arguments, not {len(arguments)}"
                )
            return arguments, token
        last = macro.variadic and len(arguments) == len(macro.parameters)
        if token.text == "," and depth == 0 and not last:
            arguments.append([])
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        arguments[-1].append(token)
    raise PreprocessorFault(f"the call of macro {macro.name} is never closed", hint="add `)`")


def _substitute(
    macro: Macro,
    raw: Mapping[str, list[Token]],
    used: Mapping[str, list[Token]],
    hidden: frozenset[str],
) -> list[Token]:
    """The body with arguments put in, `#` and `##` carried out."""
    result: list[Token] = []
    body = _with_options(macro, raw) if macro.rest is not None else macro.body
    index = 0
    while index < len(body):
        token = body[index]
        following = body[index + 1] if index + 1 < len(body) else None
        if token.text == "#" and following is not None and following.text in raw and macro.parameters:
            text = spell(raw[following.text]).strip().replace("\\", "\\\\").replace('"', '\\"')
            result.append(Token("string", f'"{text}"', token.blank))
            index += 2
            continue
        before_rest = macro.rest is not None and following is not None and following.text == macro.rest
        if token.text == "##" and before_rest and result and result[-1].text == ",":
            # A comma before the rest goes when there is no rest (GNU).
            rest = used[body[index + 1].text]
            result = [*result, *rest] if rest else result[:-1]
            index += 2
            continue
        if token.text == "##" and result and following is not None:
            right = list(raw.get(following.text, [following]))
            _paste(result, right)
            index += 2
            continue
        if token.text in raw and token.kind == "name":
            pasted = following is not None and following.text == "##"
            inserted = list((raw if pasted else used)[token.text])
            if inserted:
                inserted[0] = inserted[0]._replace(blank=token.blank)
            elif pasted:
                # An empty left side of `##` leaves a mark that joins with whatever follows.
                inserted = [Token("punctuation", "", token.blank)]
            result.extend(inserted)
        else:
            result.append(token)
        index += 1
    return [item._replace(hidden=item.hidden | hidden) for item in result if item.text]


def _with_options(macro: Macro, raw: Mapping[str, list[Token]]) -> tuple[Token, ...]:
    """The body with each `__VA_OPT__(tokens)` replaced: by its tokens, or by nothing without a rest."""
    assert macro.rest is not None
    result: list[Token] = []
    depth = index = 0
    body = macro.body
    while index < len(body):
        token = body[index]
        index += 1
        if depth == 0:
            if token.text == "__VA_OPT__" and index < len(body) and body[index].text == "(":
                depth, index = 1, index + 1
            else:
                result.append(token)
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth and raw[macro.rest]:
            result.append(token)
    if depth:
        raise PreprocessorFault("`__VA_OPT__` is never closed", hint="add `)`")
    return tuple(result)


def _paste(result: list[Token], right: list[Token]) -> None:
    left = result.pop()
    if not right:
        result.append(left)
        return
    joined = tokenise(left.text + right[0].text)
    hidden = left.hidden & right[0].hidden
    for place, item in enumerate(joined):
        blank = left.blank if place == 0 else item.blank
        result.append(Token(item.kind, item.text, blank, hidden))
    result.extend(right[1:])
