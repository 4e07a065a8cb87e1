"""One-line builders of the supervisor's everyday words, for emitters that write many.

Same words as `encode` with the form named in each builder, an order of magnitude cheaper. Register arguments
are numbers, addresses are byte addresses; every value is checked and OperandError names the builder and the
value.
"""

from __future__ import annotations

from typing import NoReturn

from .forms import OperandError, form

_SETZI = form("setzi $mDst0, zimm20").fixed
_ADD = form("add $mDst0, $mSrc0, simm16").fixed
_OR = form("or $mDst0, $mSrc0, $mSrc1").fixed
_OR_HIGH = form("or $mDst0, $mSrc0, immz12").fixed
_ADD_REGISTER = form("add $mDst0, $mSrc0, $mSrc1").fixed
_MUL = form("mul $mDst0, $mSrc0, $mSrc1").fixed
_MOV = form("or $mDst0, $mSrc0, zimm12").fixed
_SHL = form("shl $mDst0, $mSrc0, zimm12").fixed
_LD32 = form("ld32 $mDst0, $mBase0, $mDelta0, zimm12").fixed
_ST32 = form("st32 $mSrc0, $mBase0, $mDelta0, zimm12").fixed
_PUT = form("put zimm8, $mSrc0").fixed
_GET = form("get $mDst0, zimm8").fixed
_CALL = form("call $mDst0, zimm20").fixed
_BR = form("br $mSrc0").fixed
_BRI = form("bri zimm19").fixed
_BRZ = form("brz $mSrc0, zimm19").fixed
_BRNZ = form("brnz $mSrc0, zimm19").fixed
_BRNZDEC = form("brnzdec $mSrcDst0, zimm19").fixed
_SYNC = form("sync zimm4").fixed
_SANS = form("sans zimm19").fixed
_TRAP = form("trap zimm4").fixed
_RUNALL = form("runall $mEntry0, $mVBase0, zimm16").fixed
_DELAY = form("delay zimm19").fixed
_DELAYPIC = form("delaypic count, picSel, picValue").fixed
_DELAYXPIC = form("delayxpic count, xpicSel, xpicValue").fixed
_SEND = form("send count, srcWord, sctl").fixed
_SENDOFF = form("sendoff count, srcDelta, sctl").fixed
_SENDPIC = form("sendpic count, ctlSel, ctlValue").fixed
_SENDPICP = form("sendpicp count, srcWord, sctl, picSel").fixed
ZERO = 15
"""`$mzero`, which reads as 0."""

_NOP = _SETZI | 14 << 20


def _refuse(name: str, *values: int) -> NoReturn:
    raise OperandError(f"{name}({', '.join(str(value) for value in values)}): a value does not fit its field")


def setzi(m: int, value: int) -> int:
    """`setzi $m, value`: load a 20-bit constant."""
    if not (0 <= m < 16 and 0 <= value < 1 << 20):
        _refuse("setzi", m, value)
    return _SETZI | m << 20 | value


def add_imm(d: int, s: int, value: int) -> int:
    """`add $d, $s, value` with a signed 16-bit value."""
    if not (0 <= d < 16 and 0 <= s < 16 and -0x8000 <= value < 0x8000):
        _refuse("add_imm", d, s, value)
    return _ADD | s << 20 | d << 16 | value & 0xFFFF


def mov(d: int, s: int) -> int:
    """`mov $d, $s`."""
    if not (0 <= d < 16 and 0 <= s < 16):
        _refuse("mov", d, s)
    return _MOV | s << 20 | d << 16


def or_(d: int, a: int, b: int) -> int:
    """`or $d, $a, $b`."""
    if not (0 <= d < 16 and 0 <= a < 16 and 0 <= b < 16):
        _refuse("or_", d, a, b)
    return _OR | a << 20 | b << 12 | d << 4


def or_high(d: int, s: int, value: int) -> int:
    """`or $d, $s, value` with a value whose low 20 bits are zero."""
    if not (0 <= d < 16 and 0 <= s < 16 and 0 <= value < 1 << 32) or value & 0xFFFFF:
        _refuse("or_high", d, s, value)
    return _OR_HIGH | s << 20 | d << 16 | value >> 20


def add(d: int, a: int, b: int) -> int:
    """`add $d, $a, $b`."""
    if not (0 <= d < 16 and 0 <= a < 16 and 0 <= b < 16):
        _refuse("add", d, a, b)
    return _ADD_REGISTER | a << 20 | b << 12 | d << 4


def mul(d: int, a: int, b: int) -> int:
    """`mul $d, $a, $b`: the low 32 bits."""
    if not (0 <= d < 16 and 0 <= a < 16 and 0 <= b < 16):
        _refuse("mul", d, a, b)
    return _MUL | a << 20 | b << 12 | d << 4


def shl_imm(d: int, s: int, amount: int) -> int:
    """`shl $d, $s, amount` with a 12-bit amount."""
    if not (0 <= d < 16 and 0 <= s < 16 and 0 <= amount < 1 << 12):
        _refuse("shl_imm", d, s, amount)
    return _SHL | s << 20 | d << 16 | amount


def ld32(d: int, base: int, delta: int, offset: int) -> int:
    """`ld32 $d, $base, $delta, offset`: offset in words, 12 bits."""
    if not (0 <= d < 16 and 0 <= base < 16 and 0 <= delta < 16 and 0 <= offset < 1 << 12):
        _refuse("ld32", d, base, delta, offset)
    return _LD32 | base << 20 | d << 16 | delta << 12 | offset


def st32(s: int, base: int, delta: int, offset: int) -> int:
    """`st32 $s, $base, $delta, offset`: offset in words, 12 bits."""
    if not (0 <= s < 16 and 0 <= base < 16 and 0 <= delta < 16 and 0 <= offset < 1 << 12):
        _refuse("st32", s, base, delta, offset)
    return _ST32 | base << 20 | s << 16 | delta << 12 | offset


def put(csr: int, m: int) -> int:
    """`put csr, $m`."""
    if not (0 <= csr < 256 and 0 <= m < 16):
        _refuse("put", csr, m)
    return _PUT | m << 20 | csr


def get(m: int, csr: int) -> int:
    """`get $m, csr`."""
    if not (0 <= csr < 256 and 0 <= m < 16):
        _refuse("get", m, csr)
    return _GET | m << 16 | csr


def call(m: int, address: int) -> int:
    """`call $m, address`: $m becomes the return address."""
    if not (0 <= m < 16 and 0 <= address < 1 << 22) or address & 3:
        _refuse("call", m, address)
    return _CALL | m << 20 | address >> 2


def br(m: int) -> int:
    """`br $m`."""
    if not 0 <= m < 16:
        _refuse("br", m)
    return _BR | m << 20


def bri(address: int) -> int:
    """`bri address`."""
    if not 0 <= address < 1 << 21 or address & 3:
        _refuse("bri", address)
    return _BRI | address >> 2


def brz(m: int, address: int) -> int:
    """`brz $m, address`: branch if zero."""
    if not (0 <= m < 16 and 0 <= address < 1 << 21) or address & 3:
        _refuse("brz", m, address)
    return _BRZ | m << 20 | address >> 2


def brnz(m: int, address: int) -> int:
    """`brnz $m, address`: branch if not zero."""
    if not (0 <= m < 16 and 0 <= address < 1 << 21) or address & 3:
        _refuse("brnz", m, address)
    return _BRNZ | m << 20 | address >> 2


def brnzdec(m: int, address: int) -> int:
    """`brnzdec $m, address`: branch and decrement if not zero."""
    if not (0 <= m < 16 and 0 <= address < 1 << 21) or address & 3:
        _refuse("brnzdec", m, address)
    return _BRNZDEC | m << 20 | address >> 2


def sync(zone: int) -> int:
    """`sync zone`."""
    if not 0 <= zone < 16:
        _refuse("sync", zone)
    return _SYNC | zone


def sans(n: int) -> int:
    """`sans n`: sit out the next n + 1 barriers."""
    if not 0 <= n < 1 << 19:
        _refuse("sans", n)
    return _SANS | n


def trap(n: int) -> int:
    """`trap n`."""
    if not 0 <= n < 16:
        _refuse("trap", n)
    return _TRAP | n


def nop() -> int:
    """`nop`."""
    return _NOP


def runall(entry: int, base: int, stride: int) -> int:
    """`runall $entry, $base, stride`: 16-bit vertex-base stride in words."""
    if not (0 <= entry < 16 and 0 <= base < 16 and 0 <= stride < 1 << 16):
        _refuse("runall", entry, base, stride)
    return _RUNALL | entry << 20 | base << 12 | (stride >> 12) << 16 | stride & 0xFFF


def delay(n: int) -> int:
    """`delay n`: n + 1 events."""
    if not 0 <= n < 1 << 19:
        _refuse("delay", n)
    return _DELAY | n


def delaypic(n: int, select: int, value: int) -> int:
    """`delaypic n, select, value`: after n + 1 events write the incoming pointer (0) or format (1)."""
    if not (0 <= n < 128 and 0 <= select < 2 and 0 <= value < 1 << 18):
        _refuse("delaypic", n, select, value)
    return _DELAYPIC | n << 19 | select << 18 | value


def delayxpic(n: int, select: int, value: int) -> int:
    """`delayxpic n, select, value`: after n + 1 events write the mux (0) or the pair's mux (1)."""
    if not (0 <= n < 4096 and 0 <= select < 2 and 0 <= value < 1 << 13):
        _refuse("delayxpic", n, select, value)
    return _DELAYXPIC | n << 14 | select << 13 | value


def send(n: int, item_address: int, control: int) -> int:
    """`send n, item_address, control`: n + 1 items from a 4- or 8-byte item address."""
    if not (0 <= n < 64 and 0 <= item_address < 1 << 18 and 0 <= control < 8):
        _refuse("send", n, item_address, control)
    return _SEND | n << 21 | item_address << 3 | control


def sendoff(n: int, delta: int, control: int) -> int:
    """`sendoff n, delta, control`: n + 1 items, `delta` items on from where the stream stands."""
    if not (0 <= n < 4096 and 0 <= delta < 1 << 11 and 0 <= control < 8):
        _refuse("sendoff", n, delta, control)
    return _SENDOFF | (n & 63) << 21 | (n >> 6) << 14 | delta << 3 | control


def sendpic(n: int, select: int, value: int) -> int:
    """`sendpic n, select, value`: n + 1 items of the running stream and one control write.

    select 0, 1: mux, pair's mux (13-bit value); 2, 3: pointer, format (18-bit value).
    """
    if not (0 <= n < 64 and 0 <= select < 4 and 0 <= value < (1 << 18 if select & 2 else 1 << 13)):
        _refuse("sendpic", n, select, value)
    return _SENDPIC | n << 21 | select << 18 | value


def sendpicp(
    n: int, item_address: int, control: int, pic_select: int, mux_select: int, mux: int, pic: int
) -> tuple[int, int]:
    """`sendpicp`: n + 1 items from an item address, a mux write and a pointer write. 8-byte aligned."""
    if not (
        0 <= n < 64
        and 0 <= item_address < 1 << 18
        and 0 <= control < 8
        and 0 <= pic_select < 2
        and 0 <= mux_select < 2
        and 0 <= mux < 1 << 13
        and 0 <= pic < 1 << 18
    ):
        _refuse("sendpicp", n, item_address, control, pic_select, mux_select, mux, pic)
    word = _SENDPICP | pic_select << 27 | n << 21 | item_address << 3 | control
    return word, mux_select << 31 | mux << 18 | pic
