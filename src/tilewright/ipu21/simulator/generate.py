"""Write the dispatch functions as Python source: a chain over function numbers, one call per value function.

The compiler turns such a chain into a jump table.
"""

from __future__ import annotations

from . import codes
from .instruction_tables import Group, InstructionTables

SPLIT = 24
"""Functions per generated function of whole registers; the compiler's time grows faster than their number."""

_WORDS = ("x0", "x1", "x2", "x3", "y0", "y1", "y2", "y3")

_MACHINE = {
    "draw": "state[RANDOM] & 0xFFFF",
    "draw1": "state[RANDOM] >> 16",
    "draw2": "state[RANDOM + 1] & 0xFFFF",
    "draw3": "state[RANDOM + 1] >> 16",
    "random0": "state[RANDOM] + 0",
    "random1": "state[RANDOM + 1] + 0",
    "random2": "state[RANDOM + 2] + 0",
    "random3": "state[RANDOM + 3] + 0",
    "tas": "state[csr_index(context, TAS)] + 0",
    "number_format": "state[csr_index(context, FP_NFMT)] & 1",
    "scale": "signed_scale(state[csr_index(context, FP_SCL)])",
    "input_format": "state[csr_index(0, FP_INFMT)] & 3",
    "input_scale": "signed_scale(state[csr_index(0, FP_ISCL)])",
    "accumulators": "accumulators(state, context)",
    "accumulator_words": "accumulator_words(state, context)",
    "weights": "half_weights(state)",
    "single_weights": "single_weights(state)",
    "weight_words": "weight_words(state)",
}
"""What a machine parameter is called in a function of whole registers."""


def _chain(group: Group, body: list[str]) -> list[str]:
    """`if function == 0: ... elif ...`; in each branch `body`, where CALL stands for the function's value."""
    lines = []
    for index, (meaning, arguments) in enumerate(zip(group.functions, group.arguments, strict=True)):
        call = f"{meaning.name}({', '.join(arguments)})"
        lines.append(f"    {'if' if index == 0 else 'elif'} function == {index}:")
        lines += [f"        {line.replace('CALL', call)}" for line in body]
    return lines


def _plain(name: str, parameters: str, group: Group, letters: str) -> list[str]:
    renamed = Group(group.functions, [tuple(letters[: len(m.parameters)]) for m in group.functions])
    return [
        f"def {name}(function: int, {parameters}) -> int:",
        *_chain(renamed, ["return CALL"]),
        "    return 0",
        "",
    ]


def _per_lane(body: list[str]) -> list[str]:
    """A loop in each branch of a chain costs less than a chain in the loop: one jump for all lanes."""
    return ["for lane in range(lanes):", *(f"    {line}" for line in body)]


def _halves(group: Group) -> list[str]:
    body = [
        "x = (xs >> shift) & 0xFFFF",
        "y = (ys >> shift) & 0xFFFF",
        "draw = (random >> shift) & 0xFFFF",
        "result = CALL",
        "flags |= result >> 32",
        "out |= (result & 0xFFFF) << shift",
        "shift += 16",
    ]
    return [
        "def dispatch_halves(state: Integers, function: int, lanes: int, xs: int, ys: int, bounds: int,"
        " control: int, random: int) -> int:",
        "    flags = 0",
        "    out = 0",
        "    shift = 0",
        "    lower = bounds & 0xFFFF",
        "    upper = bounds >> 16",
        *_chain(group, _per_lane(body)),
        "    state[RESULT0] = out & WORD",
        "    state[RESULT1] = (out >> 32) & WORD",
        "    return flags",
        "",
    ]


def _singles(group: Group) -> list[str]:
    body = [
        "x = x1 if lane else x0",
        "y = y1 if lane else y0",
        "result = CALL",
        "flags |= result >> 32",
        "state[RESULT0 + lane] = result & WORD",
    ]
    return [
        "def dispatch_singles(state: Integers, function: int, lanes: int, x0: int, x1: int, y0: int, y1: int,"
        " control: int) -> int:",
        "    flags = 0",
        "    lower = y0",
        "    upper = y1",
        *_chain(group, _per_lane(body)),
        "    return flags",
        "",
    ]


def _whole_part(name: str, group: Group, first: int) -> list[str]:
    """One generated function for the functions from number `first` on."""
    lines = [
        f"def {name}(state: Integers, context: int, function: int, "
        + ", ".join(f"{word}: int" for word in _WORDS)
        + ", immediate: int, control: int) -> int:"
    ]
    for index in range(first, min(first + SPLIT, len(group.functions))):
        meaning, arguments = group.functions[index], group.arguments[index]
        texts = ", ".join(_MACHINE.get(argument, argument) for argument in arguments)
        lines.append(f"    {'if' if index == first else 'elif'} function == {index}:")
        if meaning.function.__annotations__["return"] == "int":
            lines += [
                f"        r{index} = {meaning.name}({texts})",
                f"        state[RESULT0] = r{index} & WORD",
                f"        return r{index} >> 32",
            ]
        else:
            lines += [
                f"        p{index}, q{index} = {meaning.name}({texts})",
                f"        state[RESULT0] = p{index} & WORD",
                f"        state[RESULT1] = q{index} & WORD",
                f"        return (p{index} | q{index}) >> 32",
            ]
    return [*lines, "    return 8", ""]


def _whole(name: str, group: Group) -> list[str]:
    parts = list(range(0, len(group.functions), SPLIT))
    lines: list[str] = []
    for first in parts:
        lines += _whole_part(f"{name}_{first}", group, first)
    words = ", ".join(_WORDS)
    lines.append(
        f"def {name}(state: Integers, context: int, function: int, "
        + ", ".join(f"{word}: int" for word in _WORDS)
        + ", immediate: int, control: int) -> int:"
    )
    for first in parts:
        call = f"{name}_{first}(state, context, function, {words}, immediate, control)"
        lines += [f"    if function < {first + SPLIT}:", f"        return {call}"]
    return [*lines, "    return 8", ""]


def dispatch_source(tables: InstructionTables) -> str:
    """Source of dispatch_main, dispatch_words, dispatch_halves, dispatch_singles, dispatch_whole,
    dispatch_state."""
    groups = tables.groups
    return "\n".join(
        _plain("dispatch_main", "x: int, y: int, z: int", groups[codes.GROUP_WORDS], "xyz")
        + _plain("dispatch_words", "x: int, y: int", groups[codes.GROUP_AUX_WORDS], "xy")
        + _halves(groups[codes.GROUP_HALVES])
        + _singles(groups[codes.GROUP_SINGLES])
        + _whole("dispatch_whole", groups[codes.GROUP_WHOLE])
        + _whole("dispatch_state", groups[codes.GROUP_STATE])
    )
