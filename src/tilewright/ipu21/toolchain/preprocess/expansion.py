"""Macros: definitions, and expansion with hide sets (a macro is not expanded inside its own expansion)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .faults import PreprocessorFault
from .tokens import Token, spell, tokenise

MAXIMUM_TOKENS = 1_000_000
"""Tokens one line may expand to."""


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for an object-like macro. A last parameter `__VA_ARGS__` takes all the rest."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]

    @property
    def variadic(self) -> bool:
        return bool(self.parameters) and (self.parameters or ("",))[-1] == "__VA_ARGS__"


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
    while index < len(tokens) and tokens[index].text != ")":
        token = tokens[index]
        if token.text == "." and spell(tokens[index : index + 3]) == "...":
            parameters.append("__VA_ARGS__")
            index += 3
            break
        if token.kind != "name" or token.text in parameters:
            raise PreprocessorFault(f"`{token.text}` is no new parameter name")
        parameters.append(token.text)
        index += 1
        if index < len(tokens) and tokens[index].text == ",":
            index += 1
    if index >= len(tokens) or tokens[index].text != ")":
        raise PreprocessorFault("expected `)` after the parameters")
    return Macro(name, tuple(parameters), tuple(tokens[index + 1 :]))


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
    body = macro.body
    index = 0
    while index < len(body):
        token = body[index]
        following = body[index + 1] if index + 1 < len(body) else None
        if token.text == "#" and following is not None and following.text in raw and macro.parameters:
            text = spell(raw[following.text]).strip().replace("\\", "\\\\").replace('"', '\\"')
            result.append(Token("string", f'"{text}"', token.blank))
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
