"""Integer instructions of the main pipeline, and the bitwise ones of both pipelines. All wrap at 32 bits.

Source: public instruction pages (known). Shift amounts of 33 and more, and arithmetic shifts by 32 and
more, are not public: they give zero or the sign (assumed).
"""

from __future__ import annotations

from .bits import WORD, signed
from .registry import per_word, words


@words("add")
def add(a: int, b: int) -> int:
    return (a + b) & WORD


@words("sub")
def sub(a: int, b: int) -> int:
    return (a - b) & WORD


@words("mul")
def mul(a: int, b: int) -> int:
    return (a * b) & WORD


@per_word("and", "and64")
def bitwise_and(a: int, b: int) -> int:
    return a & b


@per_word("andc", "andc64")
def and_complement(a: int, b: int) -> int:
    return a & (b ^ WORD)


@per_word("or", "or64")
def bitwise_or(a: int, b: int) -> int:
    return a | b


@per_word("not", "not64")
def bitwise_not(a: int) -> int:
    return a ^ WORD


@words("xor")
def xor(a: int, b: int) -> int:
    return a ^ b


@words("xnor")
def xnor(a: int, b: int) -> int:
    return a ^ b ^ WORD


@words("shl")
def shl(a: int, amount: int) -> int:
    if amount > 31:
        return 0
    return (a << amount) & WORD


@words("shr")
def shr(a: int, amount: int) -> int:
    if amount > 31:
        return 0
    return a >> amount


@words("shrs")
def shrs(a: int, amount: int) -> int:
    return (signed(a) >> min(amount, 31)) & WORD


@words("cmpeq")
def cmpeq(a: int, b: int) -> int:
    return 1 if a == b else 0


@words("cmpne")
def cmpne(a: int, b: int) -> int:
    return 1 if a != b else 0


@words("cmpslt")
def cmpslt(a: int, b: int) -> int:
    return 1 if signed(a) < signed(b) else 0


@words("cmpult")
def cmpult(a: int, b: int) -> int:
    return 1 if a < b else 0


@words("max")
def maximum(a: int, b: int) -> int:
    return a if signed(a) > signed(b) else b


@words("min")
def minimum(a: int, b: int) -> int:
    return a if signed(a) < signed(b) else b


@words("abs")
def absolute(a: int) -> int:
    """The magnitude, which of the lowest number is 0 (known: the vendor's compiler works round it)."""
    return abs(signed(a)) & 0x7FFFFFFF


@words("clz")
def clz(a: int) -> int:
    """Leading zeros, 32 for zero."""
    count = 0
    for step in (16, 8, 4, 2, 1):
        if a >> (32 - step) == 0:
            count += step
            a = (a << step) & WORD
    return count + (1 if a == 0 else 0)


@words("cms")
def cms(a: int) -> int:
    """Number of bits below bit 31 that lead with the sign bit's value, 0..31."""
    return clz((a ^ (WORD if a & 0x80000000 else 0)) & WORD) - 1


@words("popc")
def popc(a: int) -> int:
    a = a - ((a >> 1) & 0x55555555)
    a = (a & 0x33333333) + ((a >> 2) & 0x33333333)
    a = (a + (a >> 4)) & 0x0F0F0F0F
    return ((a * 0x01010101) & WORD) >> 24


@words("bitrev8")
def bitrev8(a: int) -> int:
    """Bits reversed within each byte."""
    a = ((a >> 1) & 0x55555555) | ((a & 0x55555555) << 1)
    a = ((a >> 2) & 0x33333333) | ((a & 0x33333333) << 2)
    return ((a >> 4) & 0x0F0F0F0F) | ((a & 0x0F0F0F0F) << 4)


@words("movz")
def movnz(old: int, condition: int, value: int) -> int:
    """`value` if `condition` is not zero, else the old destination.

    The table of forms calls the word `movz`. The vendor's disassembler prints it `movnz`, and the vendor's
    compiler selects with it on a condition that is not zero (derived).
    """
    return value if condition != 0 else old


@words("setzi")
def setzi(value: int) -> int:
    return value
