"""From a form and its operands to words."""

from __future__ import annotations

from .forms import COISSUE, Form, Operand, OperandError
from .forms import form as form_of


def encode(form: Form | str, *operands: int, coissue: bool = False) -> tuple[int, ...]:
    """One instruction as one word, or two for `sendpicp`.

    Args:
        form: a form or its form string.
        operands: in assembly order. Registers by number (first of a pair or quad), branch targets as byte
            addresses, signed immediates signed, high immediates (`uimm_shl20`) as the full number.
        coissue: the word is half of a bundle.

    Raises:
        OperandError: unknown form string, wrong number of operands, a value the encoding cannot hold, or
            `coissue` for a form that cannot be in a bundle.
    """
    if isinstance(form, str):
        try:
            form = form_of(form)
        except KeyError:
            raise OperandError(f"there is no instruction form {form!r}") from None
    if len(operands) != len(form.operands):
        raise OperandError(f"{form.text!r} takes {len(form.operands)} operands, not {len(operands)}")
    words = [form.fixed, 0]
    for operand, value in zip(form.operands, operands, strict=True):
        if not operand.accepts(value):
            raise refusal(form, operand, value)
        words[operand.word] |= operand.place(value)
    if coissue:
        if not form.coissue:
            raise OperandError(f"{form.mnemonic} cannot be in a bundle")
        words[0] |= COISSUE
    return tuple(words[: form.words])


def refusal(form: Form, operand: Operand, value: int) -> OperandError:
    """The error for a value an operand cannot hold."""
    if operand.kind in ("mpair", "apair", "aquad"):
        size = "pair" if operand.step == 2 else "quad"
        legal = f"the first register of a {size} is a multiple of {operand.step} up to {operand.maximum}"
    elif operand.is_register and value == 15:
        legal = "a register the instruction updates cannot be $m15"
    elif operand.step > 1:
        legal = f"it takes multiples of {operand.step:#x} from 0 to {operand.maximum:#x}"
    else:
        legal = f"it takes {operand.minimum} to {operand.maximum}"
    return OperandError(f"{form.mnemonic}: {operand.name} = {value} does not fit", hint=legal)
