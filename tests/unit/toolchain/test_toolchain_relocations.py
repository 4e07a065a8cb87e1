"""Relocations against the worked values of the published linker tests, and their limits as properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import LinkError
from tilewright.ipu21.toolchain import relocations as r

pytestmark = pytest.mark.unit

BASE = 0x4C000

WORKED = [
    (r.R20, "00000019", 0x42000, "00200419"),
    (r.R20, "00000019", 0xFFFFF, "ffff0f19"),
    (r.R19_S2, "00008040", 0x42000, "00088140"),
    (r.R19_S2, "00008040", 0xFFFF4, "fdff8340"),
    (r.R19_S2, "00008040", 0x1FFFFC, "ffff8740"),
    (r.R19_S2, "0000f8ff", 0x50120, "4840f9ff"),
    # Published with the first generation's base; the field depends on value - base only.
    (r.RUN, "00000014", BASE + 0, "00000014"),
    (r.RUN, "00000014", BASE + 4, "01000014"),
    (r.RUN, "00000014", BASE + 0x4000, "00000114"),
    (r.RUN, "00000014", BASE + 0x48D0, "34020114"),
    (r.RUN, "00000014", BASE + 0x3C3C0, "f0000f14"),
    (r.RUN, "00000014", BASE + 0x3FFFC, "ff0f0f14"),
    (r.R21, "00000000", 0x7AE40, "40ae0700"),
    (r.R21, "00000000", 0x512F8, "f8120500"),
    (r.R16, "0000", 0, "0000"),
    (r.R16, "0000", 1, "0100"),
    (r.R16, "0000", 0x45, "4500"),
    (r.R16, "0000", 0x1234, "3412"),
    (r.R16, "0000", 0xFFFF, "ffff"),
    (r.R16, "0000662a", 0x101, "0101662a"),
    (r.RELATIVE_16_S2, "0000", 0x50000, "0010"),
    (r.R16_S3, "0000", 0x50008, "01a0"),
    (r.R16_S4, "0000", 0x50010, "0150"),
    (r.R16_S5, "0000", 0x50020, "0128"),
    (r.R32, "00000000", 0x50000 + 480, "e0010500"),
]

LARGEST = {
    r.R8: 0xFF,
    r.R16: 0xFFFF,
    r.R20: 0xFFFFF,
    r.R32: 0xFFFFFFFF,
    r.R64: (1 << 64) - 1,
    r.RELATIVE_16_S2: 0x8BFFC,
    r.R18_S2: 0xFFFFC,
    r.R19_S2: 0x1FFFFC,
    r.RUN: 0x8BFFC,
    r.R16_S3: 0x7FFF8,
    r.R16_S4: 0xFFFF0,
    r.R16_S5: 0x1FFFE0,
    r.R21: 0x1FFFFF,
}


@pytest.mark.parametrize(("kind", "before", "value", "after"), WORKED)
def test_worked_examples(kind: int, before: str, value: int, after: str) -> None:
    data = bytearray.fromhex(before)
    r.apply_relocation(data, 0, kind, value)
    assert data.hex() == after


@pytest.mark.parametrize("kind", sorted(LARGEST))
def test_largest_value(kind: int) -> None:
    step = 1 << r.TYPES[kind].shift
    assert r.TYPES[kind].largest == LARGEST[kind]
    r.apply_relocation(bytearray(8), 0, kind, LARGEST[kind])
    with pytest.raises(LinkError, match="largest that fits"):
        r.apply_relocation(bytearray(8), 0, kind, LARGEST[kind] + step)


def test_published_range_message_values() -> None:
    with pytest.raises(LinkError, match="0x200000"):
        r.apply_relocation(bytearray(4), 0, r.R19_S2, 0x200000)
    with pytest.raises(LinkError, match="multiple of 4"):
        r.apply_relocation(bytearray(4), 0, r.RUN, BASE + 3)


@pytest.mark.parametrize("kind", [r.RELATIVE_16_S2, r.RUN])
def test_below_the_base(kind: int) -> None:
    with pytest.raises(LinkError, match="below tile memory"):
        r.apply_relocation(bytearray(4), 0, kind, BASE - 4)


@pytest.mark.parametrize("kind", [10, 11, 12, 13, 18, 255])
def test_unassigned_types(kind: int) -> None:
    with pytest.raises(LinkError, match="not assigned"):
        r.apply_relocation(bytearray(8), 0, kind, 0)


def test_none_touches_nothing() -> None:
    r.apply_relocation(bytearray(), 0, r.NONE, -1)


@given(
    kind=st.sampled_from(sorted(LARGEST)),
    before=st.binary(min_size=8, max_size=8),
    value=st.integers(-(1 << 40), 1 << 65),
)
def test_either_refused_or_exact(kind: int, before: bytes, value: int) -> None:
    """A value is refused exactly when it is out of range or misaligned; otherwise the field reads back."""
    shape = r.TYPES[kind]
    base = BASE if shape.relative else 0
    legal = (
        value >= base and value % (1 << shape.shift) == 0 and (value - base) >> shape.shift < 1 << shape.bits
    )
    data = bytearray(before)
    if not legal:
        with pytest.raises(LinkError):
            r.apply_relocation(data, 0, kind, value)
        assert data == before
        return
    r.apply_relocation(data, 0, kind, value)
    field = int.from_bytes(data[: shape.size], "little")
    mask = (1 << shape.bits) - 1
    if kind == r.RUN:
        mask = 0x000F0FFF
        stored = (field & 0xFFF) | (field >> 16 & 0xF) << 12
    else:
        stored = field & mask
    assert (stored << shape.shift) + base == value
    assert field & ~mask == int.from_bytes(before[: shape.size], "little") & ~mask
    assert data[shape.size :] == before[shape.size :]


@given(kind=st.sampled_from(sorted(LARGEST)), size=st.integers(0, 9), offset=st.integers(-2, 10))
def test_bounds(kind: int, size: int, offset: int) -> None:
    fits = offset >= 0 and offset + r.TYPES[kind].size <= size
    value = BASE
    if kind in (r.R8, r.R16):
        value = 0
    if fits:
        r.apply_relocation(bytearray(size), offset, kind, value)
    else:
        with pytest.raises(LinkError, match="outside its section"):
            r.apply_relocation(bytearray(size), offset, kind, value)
