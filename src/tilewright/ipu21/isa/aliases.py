"""Other spellings the vendor's assembler accepts for an instruction, as data for assembler and disassembler.

Not here, because they are no single instruction: `ldconst`, and an omitted delta of a load or store ($m15).
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Form, form
from .table import table


@dataclass(frozen=True, slots=True)
class Alias:
    """`mnemonic` with operands of the given kinds stands for `form`.

    Each of `arguments` gives one operand of the form: an index into the operands as written, or None with the
    value in `values` at the same position; an index in `negated` is used with its sign changed. `printed`
    aliases are what the disassembler shows.
    """

    mnemonic: str
    operands: tuple[str, ...]
    form: Form
    arguments: tuple[int | None, ...]
    values: tuple[int, ...]
    negated: frozenset[int]
    printed: bool
    evidence: str

    def expand(self, *written: int) -> tuple[int, ...]:
        """The form's operands for the operands as written."""
        return tuple(
            value if index is None else -written[index] if index in self.negated else written[index]
            for index, value in zip(self.arguments, self.values, strict=True)
        )

    def contract(self, operands: tuple[int, ...]) -> tuple[int, ...] | None:
        """The operands as written that expand to these, or None if the alias cannot stand for them."""
        written = [0] * len(self.operands)
        for index, value in zip(self.arguments, operands, strict=True):
            if index is not None:
                written[index] = -value if index in self.negated else value
        return tuple(written) if self.expand(*written) == operands else None


def _alias(entry: dict[str, object]) -> Alias:
    arguments: list[int | None] = []
    values: list[int] = []
    negated: set[int] = set()
    items = entry["arguments"]
    assert isinstance(items, list)
    for item in items:
        if isinstance(item, int):
            arguments.append(item)
            values.append(0)
        elif "negated" in item:
            arguments.append(item["negated"])
            values.append(0)
            negated.add(item["negated"])
        else:
            arguments.append(None)
            values.append(item["value"])
    kinds = entry["operands"]
    assert isinstance(kinds, list)
    return Alias(
        mnemonic=str(entry["alias"]),
        operands=tuple(kinds),
        form=form(str(entry["form"])),
        arguments=tuple(arguments),
        values=tuple(values),
        negated=frozenset(negated),
        printed=bool(entry["printed"]),
        evidence=str(entry["evidence"]),
    )


ALIASES: tuple[Alias, ...] = tuple(_alias(entry) for entry in table()["aliases"])
"""All aliases; of those printed for one form, the more specific comes first."""

_PRINTED: dict[Form, tuple[Alias, ...]] = {}
for _item in ALIASES:
    if _item.printed:
        _PRINTED[_item.form] = (*_PRINTED.get(_item.form, ()), _item)


def aliases_named(mnemonic: str) -> tuple[Alias, ...]:
    """The aliases spelled with this mnemonic."""
    return tuple(item for item in ALIASES if item.mnemonic == mnemonic)


def printed_aliases(item: Form) -> tuple[Alias, ...]:
    """The aliases the disassembler tries for a form, most specific first."""
    return _PRINTED.get(item, ())
