"""Control and status registers: numbers, names and bit fields.

Numbers are known (public tables); bit fields are those of the first generation, with address fields widened
to 21 bits (assumed). `get` and `put` take numbers 0..255; `uget` and `uput` reach a worker's upper space,
number 256 + operand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .table import table

UPPER = 0x100
"""First number of the upper space, a worker's aux-side registers."""


@dataclass(frozen=True, slots=True)
class Csr:
    """One register. `context` is `both`, `worker` or `supervisor`; `fields` are (name, lsb, width)."""

    name: str
    context: str
    number: int
    fields: tuple[tuple[str, int, int], ...]
    evidence: str

    def field(self, name: str) -> tuple[int, int]:
        """(lsb, width) of a field. Raises KeyError."""
        for field_name, lsb, width in self.fields:
            if field_name == name:
                return lsb, width
        raise KeyError(name)


CSRS: tuple[Csr, ...] = tuple(
    Csr(
        name=entry["name"],
        context=entry["context"],
        number=entry["number"],
        fields=tuple((name, lsb, width) for name, lsb, width in entry["fields"]),
        evidence=entry["evidence"],
    )
    for entry in table()["csrs"]
)

_BY_NAME = {csr.name: csr for csr in CSRS}


def csr(name: str) -> Csr | None:
    """The register of that name, with or without a leading `$`; None if unknown."""
    return _BY_NAME.get(name.removeprefix("$"))


def csr_number(name: str) -> int | None:
    """Its number (upper space from 0x100 on), or None."""
    found = csr(name)
    return None if found is None else found.number


def csr_name(number: int, mode: str | None = None) -> str | None:
    """The name of a number in a mode (`supervisor`, `worker`).

    Without a mode only a name that no other mode gives to another register; None if there is none.
    """
    contexts = ("both", "worker", "supervisor") if mode is None else ("both", mode)
    names = [item.name for item in CSRS if item.number == number and item.context in contexts]
    return names[0] if len(names) == 1 else None


def weight_number(unit: int, entry: int) -> int:
    """Operand of `ld64putcs` for weight CWEI_unit_entry: unit 0..15, entry 0..3 (known)."""
    if not (0 <= unit < 16 and 0 <= entry < 4):
        raise ValueError(f"there is no weight {entry} of unit {unit}")
    return 4 * unit + entry


def _number(name: str) -> int:
    return _BY_NAME[name].number


PC: Final = _number("PC")
DBG_DATA: Final = _number("DBG_DATA")
DBG_BRK_ID: Final = _number("DBG_BRK_ID")

SSR: Final = _number("SSR")
CR: Final = _number("CR")
TILE_ID: Final = _number("TILE_ID")
FP_ICTL: Final = _number("FP_ICTL")
WORKER0_BASE: Final = _number("WORKER0_BASE")
FP_INFMT: Final = _number("FP_INFMT")
FP_ISCL: Final = _number("FP_ISCL")
CCCSLOAD: Final = _number("CCCSLOAD")
SCOUNT_L: Final = _number("SCOUNT_L")
SCOUNT_U: Final = _number("SCOUNT_U")
CTXT_STS: Final = _number("CTXT_STS")
DBG_CTL: Final = _number("DBG_CTL")
DBG_ECSR: Final = _number("DBG_ECSR")
DBG_ECLR: Final = _number("DBG_ECLR")
INCOMING_MUX: Final = _number("INCOMING_MUX")
INCOMING_MUXPAIR: Final = _number("INCOMING_MUXPAIR")
INCOMING_DELTA: Final = _number("INCOMING_DELTA")
INCOMING_FORMAT: Final = _number("INCOMING_FORMAT")
INCOMING_BASE: Final = _number("INCOMING_BASE")
INCOMING_SINIT: Final = _number("INCOMING_SINIT")
INCOMING_DCOUNT: Final = _number("INCOMING_DCOUNT")
OUTGOING_BASE: Final = _number("OUTGOING_BASE")
OUTGOING_DELTA: Final = _number("OUTGOING_DELTA")
EXCHANGE_CTL: Final = _number("EXCHANGE_CTL")
ANS_DCOUNT: Final = _number("ANS_DCOUNT")
EXCHANGE_ADJ: Final = _number("EXCHANGE_ADJ")

WSR: Final = _number("WSR")
VERTEX_BASE: Final = _number("VERTEX_BASE")
WORKER_BASE: Final = _number("WORKER_BASE")
REPEAT_COUNT: Final = _number("REPEAT_COUNT")
REPEAT_FIRST: Final = _number("REPEAT_FIRST")
REPEAT_END: Final = _number("REPEAT_END")
COUNT_L: Final = _number("COUNT_L")
COUNT_U: Final = _number("COUNT_U")

FP_STS: Final = _number("FP_STS")
FP_CLR: Final = _number("FP_CLR")
FP_CTL: Final = _number("FP_CTL")
PRNG_0_0: Final = _number("PRNG_0_0")
PRNG_0_1: Final = _number("PRNG_0_1")
PRNG_1_0: Final = _number("PRNG_1_0")
PRNG_1_1: Final = _number("PRNG_1_1")
PRNG_SEED: Final = _number("PRNG_SEED")
TAS: Final = _number("TAS")
FP_NFMT: Final = _number("FP_NFMT")
FP_SCL: Final = _number("FP_SCL")
