"""Write the dispatch functions as Python source: a chain over function numbers, one call per value function.

The compiler turns such a chain into a jump table.
"""

from __future__ import annotations

from collections.abc import Callable

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


def _chain(group: Group, branch: Callable[[str, tuple[str, ...]], list[str]]) -> list[str]:
    """`if function == 0: ... elif ...`, each branch made from a value function's name and arguments."""
    lines = []
    for index, (meaning, arguments) in enumerate(zip(group.functions, group.arguments, strict=True)):
        lines.append(f"    {'if' if index == 0 else 'elif'} function == {index}:")
        lines += [f"        {line}" for line in branch(meaning.name, arguments)]
    return lines


def _plain(name: str, parameters: str, group: Group, letters: str) -> list[str]:
    renamed = Group(group.functions, [tuple(letters[: len(m.parameters)]) for m in group.functions])
    return [
        f"def {name}(function: int, {parameters}) -> int:",
        *_chain(renamed, lambda function, arguments: [f"return {function}({', '.join(arguments)})"]),
        "    return 0",
        "",
    ]


def _lanes(group: Group, lane: Callable[[int], dict[str, str]], after: list[str], half: int) -> list[str]:
    """A chain whose branches apply a value function to each of `half` or twice as many lanes.

    All lanes are written out: a jump for each of them, or the preparations of a vectorised loop, would cost
    more than the function. Rounding to nearest, the usual mode, has a copy of its own, from which the
    compiler drops the other modes.

    Args:
        lane: the arguments that differ from lane to lane, by the names that value functions use.
        after: what is done with each `result`; LANE stands for the lane's number.
    """

    def written_out(function: str, arguments: tuple[str, ...]) -> list[str]:
        lines = []
        for number in range(2 * half):
            texts = ", ".join(lane(number).get(name, name) for name in arguments)
            body = [f"result = {function}({texts})", *(line.replace("LANE", str(number)) for line in after)]
            if number == half:
                lines.append(f"if lanes == {2 * half}:")
            lines += [f"    {line}" if number >= half else line for line in body]
        return lines

    def branch(function: str, arguments: tuple[str, ...]) -> list[str]:
        if "control" not in arguments:
            return written_out(function, arguments)
        usual = tuple("control & ~MODES" if name == "control" else name for name in arguments)
        return [
            "if control & MODES == 0:",
            *(f"    {line}" for line in written_out(function, usual)),
            "else:",
            *(f"    {line}" for line in written_out(function, arguments)),
        ]

    return _chain(group, branch)


def _halves(group: Group) -> list[str]:
    def lane(number: int) -> dict[str, str]:
        words = {"x": "xs", "y": "ys", "draw": "random"}
        return {name: f"({word} >> {16 * number}) & 0xFFFF" for name, word in words.items()}

    after = ["flags |= result >> 32", "out |= (result & 0xFFFF) << (16 * LANE)"]
    return [
        "def dispatch_halves(state: Integers, function: int, lanes: int, xs: int, ys: int, bounds: int,"
        " control: int, random: int) -> int:",
        "    flags = 0",
        "    out = 0",
        "    lower = bounds & 0xFFFF",
        "    upper = bounds >> 16",
        *_lanes(group, lane, after, 2),
        "    state[RESULT0] = out & WORD",
        "    state[RESULT1] = (out >> 32) & WORD",
        "    return flags",
        "",
    ]


def _singles(group: Group) -> list[str]:
    def lane(number: int) -> dict[str, str]:
        return {"x": f"x{number}", "y": f"y{number}"}

    return [
        "def dispatch_singles(state: Integers, function: int, lanes: int, x0: int, x1: int, y0: int, y1: int,"
        " control: int) -> int:",
        "    flags = 0",
        "    lower = y0",
        "    upper = y1",
        *_lanes(group, lane, ["flags |= result >> 32", "state[RESULT0 + LANE] = result & WORD"], 1),
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
    return "MODES = ESR | ROUNDING\n\n\n" + "\n".join(
        _plain("dispatch_main", "x: int, y: int, z: int", groups[codes.GROUP_WORDS], "xyz")
        + _plain("dispatch_words", "x: int, y: int", groups[codes.GROUP_AUX_WORDS], "xy")
        + _halves(groups[codes.GROUP_HALVES])
        + _singles(groups[codes.GROUP_SINGLES])
        + _whole("dispatch_whole", groups[codes.GROUP_WHOLE])
        + _whole("dispatch_state", groups[codes.GROUP_STATE])
    )
