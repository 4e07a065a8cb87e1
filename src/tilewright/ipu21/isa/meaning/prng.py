"""The workers' pseudo-random generator, xoroshiro128aox, and what is drawn from it.

Source of the generator: Hanlon and Felix, arXiv 2203.04058 (known). 64-bit values are handled as two words,
low word first.
"""

from __future__ import annotations

from .bits import WORD, nearest_single
from .float16 import round_half
from .registry import whole


def rotate_left(low: int, high: int, amount: int) -> tuple[int, int]:
    """A 64-bit rotation by 1..63 bits other than 32."""
    if amount > 32:
        low, high = high, low
        amount -= 32
    back = 32 - amount
    return ((low << amount) & WORD) | (high >> back), ((high << amount) & WORD) | (low >> back)


def output(s0: tuple[int, int], s1: tuple[int, int]) -> tuple[int, int]:
    """The 64 random bits a state delivers, before it steps: x ^ (rotl(a, 1) | rotl(a, 2)), x = s0^s1, a =
    s0&s1."""
    both0, both1 = s0[0] & s1[0], s0[1] & s1[1]
    one = rotate_left(both0, both1, 1)
    two = rotate_left(both0, both1, 2)
    return (s0[0] ^ s1[0]) ^ (one[0] | two[0]), (s0[1] ^ s1[1]) ^ (one[1] | two[1])


def next_s0(s0: tuple[int, int], s1: tuple[int, int]) -> tuple[int, int]:
    """rotl(s0, 55) ^ x ^ (x << 14)."""
    x0, x1 = s0[0] ^ s1[0], s0[1] ^ s1[1]
    turned = rotate_left(s0[0], s0[1], 55)
    return turned[0] ^ x0 ^ ((x0 << 14) & WORD), turned[1] ^ x1 ^ (((x1 << 14) & WORD) | (x0 >> 18))


def next_s1(s0: tuple[int, int], s1: tuple[int, int]) -> tuple[int, int]:
    """rotl(x, 36)."""
    return rotate_left(s0[0] ^ s1[0], s0[1] ^ s1[1], 36)


def seeded(value: int, index: int) -> int:
    """What writing `value` to $PRNG_SEED puts into generator word `index` (0_0, 0_1, 1_0, 1_1; known)."""
    complement = value ^ WORD
    if index == 0:
        return value
    if index == 1:
        return complement
    if index == 2:
        return ((value << 13) & WORD) | (complement >> 19)
    return ((complement << 13) & WORD) | (value >> 19)


def keep_half(half: int, draw: int, probability: int) -> int:
    """One lane of `f16v4rmask`: kept with probability p/65536, p = bits 15:0; bit 16 keeps all (known)."""
    if probability & 0x10000 or draw < (probability & 0xFFFF):
        return half
    return 0


def gaussian(low: int, high: int) -> float:
    """An approximately normal number: twelve 5-bit fields of one draw, (sum - 186) / 32 (assumed)."""
    total = 0
    for field in range(6):
        total += (low >> (5 * field)) & 31
        total += (high >> (5 * field)) & 31
    return (total - 186) / 32.0


@whole("urand32")
def urand32(random0: int) -> int:
    """The low half of one draw (assumed: which half is not public)."""
    return random0


@whole("urand64")
def urand64(random0: int, random1: int) -> tuple[int, int]:
    return random0, random1


@whole("f16v4rmask")
def f16v4rmask(x0: int, x1: int, probability: int, random0: int, random1: int) -> tuple[int, int]:
    """Each half kept or zeroed by its own 16 bits of one draw, element 0 by the lowest (known)."""
    low = keep_half(x0 & 0xFFFF, random0 & 0xFFFF, probability) | (
        keep_half(x0 >> 16, random0 >> 16, probability) << 16
    )
    high = keep_half(x1 & 0xFFFF, random1 & 0xFFFF, probability) | (
        keep_half(x1 >> 16, random1 >> 16, probability) << 16
    )
    return low, high


@whole("f32v2rmask")
def f32v2rmask(x0: int, x1: int, probability: int, random0: int, random1: int) -> tuple[int, int]:
    """Each float32 kept or zeroed by the low 16 bits of its half of the draw (assumed: which bits is not
    public)."""
    return (
        keep_half(x0, random0 & 0xFFFF, probability),
        keep_half(x1, random1 & 0xFFFF, probability),
    )


@whole("f32v2grand")
def f32v2grand(random0: int, random1: int, random2: int, random3: int) -> tuple[int, int]:
    """Two approximately normal numbers, one draw each (assumed)."""
    return nearest_single(gaussian(random0, random1)), nearest_single(gaussian(random2, random3))


@whole("f16v2grand")
def f16v2grand(random0: int, random1: int, random2: int, random3: int) -> int:
    """Two approximately normal halves, one draw each (assumed); their values are exact, nothing is
    rounded."""
    low = round_half(gaussian(random0, random1), 0, 0)
    return low | (round_half(gaussian(random2, random3), 0, 0) << 16)
