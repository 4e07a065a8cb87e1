"""Legal and illegal operands for instruction forms, and a reader of instruction text; for tests only."""

from __future__ import annotations

from hypothesis import strategies as st

from tilewright.ipu21.isa import (
    FORMS,
    Form,
    Operand,
    constant,
    csr_number,
    encode,
    forms_named,
    parse_register,
)
from tilewright.ipu21.isa.aliases import aliases_named
from tilewright.ipu21.isa.csrs import UPPER


def legal_value(operand: Operand) -> st.SearchStrategy[int]:
    """Any value the operand can hold."""
    step = operand.step
    return st.integers(operand.minimum // step, operand.maximum // step).map(lambda value: value * step)


def illegal_value(operand: Operand) -> st.SearchStrategy[int]:
    """A value beyond either end, or off the step."""
    outside = st.one_of(
        st.integers(operand.maximum + 1, operand.maximum + (1 << 33)),
        st.integers(operand.minimum - (1 << 33), operand.minimum - 1),
    )
    if operand.step == 1:
        return outside
    off_step = st.integers(operand.minimum, operand.maximum).filter(lambda value: value % operand.step != 0)
    return st.one_of(outside, off_step)


@st.composite
def instructions(draw: st.DrawFn) -> tuple[Form, tuple[int, ...], bool]:
    """A form, legal operands, and whether it is in a bundle."""
    form = draw(st.sampled_from(FORMS))
    operands = tuple(draw(legal_value(operand)) for operand in form.operands)
    return form, operands, draw(st.booleans()) if form.coissue else False


def extremes(form: Form) -> list[tuple[int, ...]]:
    """Operand tuples that put each operand at its limits while the others are at a limit too."""
    low = tuple(operand.minimum for operand in form.operands)
    high = tuple(operand.maximum for operand in form.operands)
    cases = [low, high]
    for position in range(len(form.operands)):
        cases.append((*low[:position], high[position], *low[position + 1 :]))
        cases.append((*high[:position], low[position], *high[position + 1 :]))
    return cases


def read_text(text: str) -> tuple[int, ...]:
    """The words a text stands for, by the vendor's rules for choosing among forms of one mnemonic.

    The sign-extended immediate wins if the value fits, the low twelve bits win over the high ones.
    """
    mnemonic, _, rest = text.partition(" ")
    items = rest.split(", ") if rest else []
    fitting = [(form, values) for form in forms_named(mnemonic) if (values := _fit(form, items)) is not None]
    for alias in aliases_named(mnemonic):
        if len(alias.operands) == len(items):
            parsed = [_value(kind, "", item) for kind, item in zip(alias.operands, items, strict=True)]
            if all(value is not None for value in parsed):
                fitting.append((alias.form, alias.expand(*[value for value in parsed if value is not None])))
    preference = {"simm": 0, "uimm": 1, "uimm_shl20": 2}
    fitting.sort(key=lambda pair: max([preference.get(item.kind, 0) for item in pair[0].operands], default=0))
    if not fitting:
        raise ValueError(f"nothing fits {text!r}")
    form, values = fitting[0]
    return encode(form, *values)


def _fit(form: Form, items: list[str]) -> tuple[int, ...] | None:
    if len(items) != len(form.operands):
        return None
    values = []
    for operand, item in zip(form.operands, items, strict=True):
        value = _value(operand.kind, operand.suffix, item)
        if value is not None and operand.names == "upper_csr" and value >= UPPER:
            value -= UPPER
        if value is None or not operand.accepts(value):
            return None
        values.append(value)
    return tuple(values)


def _value(kind: str, suffix: str, item: str) -> int | None:
    if kind in ("mreg", "areg", "mpair", "apair", "aquad"):
        if not item.endswith(suffix):
            return None
        found = parse_register(item.removesuffix(suffix))
        return found[1] if found is not None and found[0] == kind else None
    if item.startswith("$"):
        return csr_number(item)
    known = constant(item)
    if known is not None:
        return known
    try:
        return int(item, 0)
    except ValueError:
        return None
