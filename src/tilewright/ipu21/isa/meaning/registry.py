"""Which function says what an instruction does, and how its operands reach the function.

A decorator claims every form of the mnemonics it names. Its name is the marshalling:

- `words`: one word per source operand, in assembly order, and an immediate as its value; returns one word.
- `per_word`: the same, applied to each word of a pair independently.
- `halves`: applied to each 16-bit lane of its vectors. `:BL` / `:BU` repeat one half of the first source.
- `singles`: applied to each float32 of its vectors. `:B` repeats the first source.
- `whole`: all words of all sources, low word first, then an immediate; returns one word or a tuple of two.

Parameters with these names are supplied by the machine and not by an operand: `control` ($FP_CTL), `draw` (16
random bits per lane), `scale` (the worker's signed $FP_SCL), `number_format` (bit 0 of $FP_NFMT), `tas`
($TAS), `lower` and `upper` (elements 0 and 1 of the second source, the same for every lane), and, for
functions with state, `accumulators` and `accumulator_words` (the worker's 32 float32, as numbers or raw),
`weights`, `single_weights` and `weight_words` (the common weight entries as halves, singles or raw),
`input_format` and `input_scale` ($FP_INFMT and the signed $FP_ISCL). `random0` to `random3` are the words of
one or two draws. A function may also read the flags of a tuple's words: bits
34:32, as everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Meaning:
    """A function and the mnemonics it is the meaning of.

    Attributes:
        function: the plain Python function.
        marshalling: `words`, `per_word`, `halves`, `singles` or `whole`.
        parameters: names of its parameters, in order.
    """

    function: Callable[..., Any]
    marshalling: str
    parameters: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.function.__name__


MEANINGS: dict[str, Meaning] = {}
"""Mnemonic to meaning, filled by the decorators when the meaning modules are imported."""


def _claim(marshalling: str, mnemonics: tuple[str, ...]) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        meaning = Meaning(function, marshalling, tuple(inspect.signature(function).parameters))
        for mnemonic in mnemonics:
            if mnemonic in MEANINGS:
                raise ValueError(f"{mnemonic} has two meanings: {MEANINGS[mnemonic].name} and {meaning.name}")
            MEANINGS[mnemonic] = meaning
        return function

    return register


def words(*mnemonics: str) -> Callable[[Function], Function]:
    """Claim mnemonics for a function from words to a word."""
    return _claim("words", mnemonics)


def per_word(*mnemonics: str) -> Callable[[Function], Function]:
    """Claim mnemonics for a function applied to each 32-bit word."""
    return _claim("per_word", mnemonics)


def halves(*mnemonics: str) -> Callable[[Function], Function]:
    """Claim mnemonics for a function applied to each 16-bit lane."""
    return _claim("halves", mnemonics)


def singles(*mnemonics: str) -> Callable[[Function], Function]:
    """Claim mnemonics for a function applied to each float32 lane."""
    return _claim("singles", mnemonics)


def whole(*mnemonics: str) -> Callable[[Function], Function]:
    """Claim mnemonics for a function of all operand words."""
    return _claim("whole", mnemonics)
