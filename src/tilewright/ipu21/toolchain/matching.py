"""Which instruction forms a mnemonic with operands of given kinds can mean."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..isa.aliases import ALIASES
from ..isa.forms import Form, Operand, forms_named, mnemonics
from ..isa.registers import AUX_ZERO, MAIN_ZERO
from .diagnostics import SourceFault, did_you_mean
from .operands import EXPRESSION, Written

_PREFERENCE = {"simm": 0, "uimm": 1, "word_address": 1, "uimm_shl20": 2}
"""Order in which immediate kinds are tried: the vendor's assembler takes the sign-extended one when it fits
(known)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reading of an instruction: `arguments` gives each operand of the form as an index into the written
    operands, or None with the value in `values`; indices in `negated` change sign."""

    form: Form
    arguments: tuple[int | None, ...]
    values: tuple[int, ...]
    negated: frozenset[int] = frozenset()

    @property
    def rank(self) -> int:
        return max((_PREFERENCE.get(operand.kind, 0) for operand in self.form.operands), default=0)


Key = tuple[str, ...]


def _key(operand: Operand) -> str:
    return operand.kind + operand.suffix if operand.is_register else EXPRESSION


def _direct(form: Form) -> list[tuple[Key, Candidate]]:
    """The form as the table writes it, and loads and stores with one of the address registers left out
    ($m15).
    """
    keys = tuple(_key(operand) for operand in form.operands)
    count = len(keys)
    entries = [(keys, Candidate(form, tuple(range(count)), (0,) * count))]
    names = [operand.name for operand in form.operands]
    if "mBase0" in names and "mDelta0" in names and count == 4:
        position = names.index("mDelta0")
        if form.operands[position].suffix == "+=":
            position = names.index("mBase0")
        elif form.operands[position].suffix:
            return entries
        if any(operand.suffix not in ("", "+=") for operand in form.operands):
            return entries
        if form.mnemonic == "ld64a32":
            return entries
        arguments = [
            index if index < position else None if index == position else index - 1 for index in range(count)
        ]
        values = [MAIN_ZERO if index == position else 0 for index in range(count)]
        short = keys[:position] + keys[position + 1 :]
        entries.append((short, Candidate(form, tuple(arguments), tuple(values))))
    return entries


@functools.cache
def readings(mnemonic: str) -> dict[Key, tuple[Candidate, ...]] | None:
    """Operand kinds -> candidates, most preferred first; None for an unknown mnemonic."""
    found: dict[Key, list[Candidate]] = {}
    for form in forms_named(mnemonic):
        for key, candidate in _direct(form):
            found.setdefault(key, []).append(candidate)
    for alias in ALIASES:
        if alias.mnemonic != mnemonic:
            continue
        key = tuple(
            kind if kind in ("mreg", "areg", "mpair", "apair", "aquad") else EXPRESSION
            for kind in alias.operands
        )
        targets = [alias.form]
        if alias.negated:
            # The negated immediate may fit the zero-extended sibling where it does not fit the sign-
            # extended form.
            targets += [
                form
                for form in forms_named(alias.form.mnemonic)
                if form is not alias.form
                and tuple(map(_key, form.operands)) == tuple(map(_key, alias.form.operands))
            ]
        for target in targets:
            found.setdefault(key, []).append(Candidate(target, alias.arguments, alias.values, alias.negated))
    if not found:
        return None
    return {key: tuple(sorted(candidates, key=lambda item: item.rank)) for key, candidates in found.items()}


@functools.cache
def all_mnemonics() -> tuple[str, ...]:
    """Every spelling the assembler takes, for suggestions."""
    return tuple(sorted({*mnemonics(), *(alias.mnemonic for alias in ALIASES), "ldconst"}))


def _spelled(key: Key) -> str:
    names = {
        "mreg": "$m",
        "areg": "$a",
        "mpair": "$m:pair",
        "apair": "$a:pair",
        "aquad": "$a:quad",
        EXPRESSION: "number",
    }
    words = []
    for kind in key:
        for name, shown in names.items():
            if kind == name or (kind.startswith(name) and kind[len(name)] in "+@>:"):
                words.append(shown + kind[len(name) :])
                break
    return ", ".join(words)


def _related(key: Key) -> list[Key]:
    """Other spellings of the same operands: `:B` for `:BL` and the reverse, `:BL` for `:B` (known: both
    occur).
    """
    related = []
    for index, kind in enumerate(key):
        if kind.endswith(":B"):
            related.append((*key[:index], kind + "L", *key[index + 1 :]))
        elif kind.endswith(":BL"):
            related.append((*key[:index], kind[:-1], *key[index + 1 :]))
    return related


def match(mnemonic: str, operands: list[Written], offset: int) -> tuple[Candidate, ...]:
    """Candidates for an instruction as written. Raises SourceFault naming what would be accepted."""
    table = readings(mnemonic)
    if table is None:
        raise SourceFault(
            f"there is no instruction `{mnemonic}`", offset, hint=did_you_mean(mnemonic, all_mnemonics())
        )
    key = tuple(operand.kind for operand in operands)
    found = table.get(key)
    if found is not None:
        return found
    for other in _related(key):
        if other in table:
            return table[other]
    # `$azero` is written for register 15 of either file where a zero address is meant (known: published
    # kernels).
    zeros = [
        index
        for index, operand in enumerate(operands)
        if operand.kind == "areg" and operand.value == AUX_ZERO
    ]
    if zeros:
        swapped = tuple("mreg" if index in zeros and index else kind for index, kind in enumerate(key))
        if swapped in table:
            return table[swapped]
    accepted = [_spelled(choice) for choice in table]
    shown = f"`{mnemonic}` takes " + "; or ".join(accepted[:6]) + ("; ..." if len(accepted) > 6 else "")
    got = _spelled(key) or "no operands"
    place = operands[0].offset if operands else offset
    for index, operand in enumerate(operands):
        if not any(len(choice) > index and choice[: index + 1] == key[: index + 1] for choice in table):
            place = operand.offset
            break
    raise SourceFault(f"`{mnemonic}` cannot have these operands: {got}", place, hint=shown)
