"""Random worker programs, and a judge that runs them on both engines.

Most operands are chosen so that the program goes on: addresses in memory, aligned, pointers that are not
overwritten. The rest is as wild as the encoding allows.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.isa.encode import encode
from tilewright.ipu21.isa.forms import FORMS, Form, forms_named
from tilewright.ipu21.isa.meaning.address import packed_high, packed_low
from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_BASE
from tilewright.ipu21.simulator import state as at
from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.instruction_tables import instruction_tables
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.translate.matrix import SPLIT_FORMS
from tilewright.ipu21.simulator.translate.native import without_cache
from tilewright.ipu21.simulator.translate.products import AMP
from tilewright.ipu21.simulator.translate.tiles import run_translated, translator

CODE = 0x4C100
ENTRY = 0x4C200
LOW = 0x60000
"""Data in region 0; workers own 0x400 bytes each unless they share."""
HIGH = 0x90000
WORKER_SPACE = 0x1000
POINTERS = {16: 4, 8: 5, 4: 6, 2: 7, 1: 1}
"""Access size to the M register that holds an address for it: it only moves by that size."""
PAIR, STRIDE, OFFSET = 8, 10, 3
FREE = (0, 2, 11)
"""M registers for everything that is no address."""

SPECIAL_HALVES = np.array(
    [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7D01]
)
SPECIAL_SINGLES = np.array(
    [
        0,
        1 << 31,
        1,
        0x7FFFFF,
        0x800000,
        0x7F7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x7F800001,
        0x477FF000,
    ]
)

_CONTROL = frozenset(("br", "bri", "brz", "brnz", "brneg", "brpos", "brnzdec", "call", "rpt", "trap"))
_LEAVING = frozenset(("exitz", "exitnz", "exitneg", "exitpos"))


def worker_forms() -> list[Form]:
    """Every form a worker executes, without those that change the flow."""
    simulated = instruction_tables().simulated
    return [
        form
        for form in FORMS
        if simulated[form.index] and form.mode != "supervisor" and form.mnemonic not in _CONTROL | _LEAVING
    ]


ORDINARY = frozenset(
    ("add", "and", "shr", "setzi", "ld32", "ld64", "ld64step", "st64", "st64step", "ld2x64pace")
)
PACED = frozenset(("ldst64pace", "ld2xst64pace", "st64pace"))
HALVES = frozenset(("f16v4add", "f16v4mul", "f16v4max", "f16v2sub", "f16v2exp", "f16v2tanh", "f32v4tof16"))
FAMILIES = {
    "sums": SPLIT_FORMS | ORDINARY | HALVES | {"uput"},
    "products": {AMP, "uput"} | ORDINARY | PACED,
    "elementary": ORDINARY | {"f16v2exp", "f16v2exp2", "f16v2ln", "f16v2log2", "f16v2tanh", "f16v2sigm"},
}
"""Mnemonics that leave a worker's accumulators in one of their native forms, and functions by tables."""


def forms_of(family: str) -> list[Form]:
    """The worker forms of a family."""
    return [form for form in worker_forms() if form.mnemonic in FAMILIES[family]]


@dataclass
class Source:
    """Draws operands. `wild`: probability of an operand that need not make sense."""

    random: np.random.Generator
    wild: float = 0.002

    def choose(self, items: object) -> int:
        return int(self.random.choice(np.asarray(items)))

    def operands(self, form: Form) -> list[int]:
        values = []
        for position, item in enumerate(form.operands):
            if item.is_register:
                values.append(self._register(form, position))
                continue
            span = (item.maximum - item.minimum) // item.step
            tame = form.mnemonic.startswith(("ld", "st")) and self.random.random() > self.wild
            top = min(span, 6) if tame else span
            if form.pipeline == "aux" and item.names != "upper_csr" and self.random.random() > self.wild:
                # Flags and chains: the first two numbers have a meaning everywhere.
                top = min(span, 1 if self.random.random() < 0.5 or "amp" not in form.mnemonic else 3)
            lowest = 0 if tame and item.minimum <= 0 else item.minimum
            value = lowest + int(self.random.integers(0, top + 1)) * item.step
            if item.names in ("csr", "upper_csr"):
                value = self._csr(form, item.minimum, item.maximum)
            values.append(min(value, item.maximum))
        return values

    def _csr(self, form: Form, low: int, high: int) -> int:
        if self.random.random() < self.wild:
            return int(self.random.integers(low, high + 1))
        if form.mnemonic == "get":
            return self.choose((0, 1, 2, 3, 0x60, 0x61))
        return (
            self.choose((7,))
            if form.mnemonic == "put"
            else self.choose((0, 1, 3, 4, 5, 6, 7, 8, 8, 8, 9, 10))
        )

    def _register(self, form: Form, position: int) -> int:
        item = form.operands[position]
        size = {"mreg": 1, "areg": 1, "mpair": 2, "apair": 2, "aquad": 4}[item.kind]
        if item.kind[0] == "a":
            return self.choose(range(0, 16 if self.random.random() < 0.15 else 8, size))
        if self.random.random() < self.wild:
            return min(self.choose(range(0, 16, size)), item.maximum)
        if form.mnemonic == "tapack" and "Dst" not in item.name:
            return self.choose((POINTERS[16], POINTERS[8]))
        memory = form.mnemonic.startswith(("ld", "st")) and form.pipeline == "main"
        if item.kind == "mpair":
            return PAIR
        if not memory:
            return self.choose((*FREE, *FREE, 12, 15)) if "Dst" not in item.name else self.choose(FREE)
        number = self._pointer(form, position)
        return number if number <= item.maximum else self.choose(list(POINTERS.values()))

    def _pointer(self, form: Form, position: int) -> int:
        """The registers of memory instructions: data, base, delta, stride or offset."""
        if "pace" in form.mnemonic:
            return STRIDE
        registers = [index for index, other in enumerate(form.operands) if other.kind == "mreg"]
        place = registers.index(position)
        if form.operands[0].kind == "mreg" and form.pipeline == "main" and form.mnemonic != "tapack":
            place -= 1
        if place < 0:
            return self.choose(FREE)
        pointer = POINTERS[_access_size(form.mnemonic)]
        if form.mnemonic.startswith("stm"):
            return pointer if place == 0 else OFFSET
        if form.mnemonic == "ld64a32":
            return (POINTERS[8], POINTERS[4], OFFSET)[place]
        if form.mnemonic == "ldb16b16":
            return (POINTERS[2], OFFSET, OFFSET)[place]
        if form.mnemonic.startswith("ldd"):
            list_pointer = POINTERS[4 if form.mnemonic == "ldd16v2a32" else 2]
            return (list_pointer, pointer, OFFSET)[place]
        if form.mnemonic.endswith("step"):
            return (15, pointer, OFFSET)[place]
        return (pointer, 15, OFFSET)[place]


def _access_size(mnemonic: str) -> int:
    """Bytes of a plain load or store."""
    digits = "".join(letter for letter in mnemonic.split("a")[-1] if letter.isdigit()) or "32"
    return {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}.get(digits, 2)


def assemble(source: Source, forms: list[Form], steps: int, *, loops: bool) -> NDArray[np.uint32]:
    """Words of a worker that begins at ENTRY and leaves."""
    words: list[int] = []
    mains = [form for form in forms if form.pipeline == "main" and form.coissue and not _loads_delta(form)]
    auxes = [form for form in forms if form.pipeline == "aux" and form.coissue]
    repeatable = [form for form in mains if not form.flags]

    def single() -> list[int]:
        form = forms[int(source.random.integers(len(forms)))]
        before: tuple[int, ...] = ()
        if _loads_delta(form) and source.random.random() < 0.95:
            before = encode(_form_of("setzi"), OFFSET, source.choose((0, 8, 16, 0x80008)))
        return [*before, *encode(form, *source.operands(form))]

    def bundle(main_forms: list[Form]) -> list[int]:
        main = main_forms[int(source.random.integers(len(main_forms)))]
        aux = auxes[int(source.random.integers(len(auxes)))]
        return [
            encode(main, *source.operands(main), coissue=True)[0],
            encode(aux, *source.operands(aux), coissue=True)[0],
        ]

    def address() -> int:
        return ENTRY + 4 * len(words)

    issued = 0
    while issued < steps:
        kind = source.random.random() if loops else 0.0
        if kind < 0.55:
            words += single() if source.random.random() < 0.4 else bundle(mains)
            issued += 1
        elif kind < 0.75:
            count, size = int(source.random.integers(0, 6)), int(source.random.integers(1, 4))
            if not address() & 7:
                words += _NOP
            words += encode("rpt zimm12, zimm8", count, size - 1)
            for _ in range(size):
                words += bundle(repeatable)
            issued += 2 + size
        elif kind < 0.9:
            words += encode(_form_of("setzi"), 2, int(source.random.integers(0, 4)))
            begin = address()
            for _ in range(int(source.random.integers(1, 4))):
                words += single()
            words += encode(_BRNZDEC, 2, begin)
            issued += 2
        else:
            target = address() + 4 * (1 + int(source.random.integers(1, 3)))
            form = _BRANCHES[int(source.random.integers(len(_BRANCHES)))]
            words += encode(form, source.choose(FREE), target)
            words += _NOP * 2
            issued += 1
    words += encode(_EXIT, source.choose((15, 15, 0)))
    return np.array(words, dtype=np.uint32)


def _loads_delta(form: Form) -> bool:
    """Loads through deltas, most of which load the next delta too."""
    return form.mnemonic.startswith("ldd") or form.mnemonic in ("ld64a32", "ldb16b16")


def _form_of(mnemonic: str) -> Form:
    return forms_named(mnemonic)[0]


_BRNZDEC = _form_of("brnzdec")
_BRANCHES = [_form_of("brz"), _form_of("brnz"), _form_of("brneg"), _form_of("brpos")]
_EXIT = _form_of("exitz")
_NOP = list(encode(_form_of("setzi"), 11, 0))


def supervisor() -> NDArray[np.uint32]:
    """Runs all workers on ENTRY and returns."""
    words = [
        *encode(_form_of("setzi"), 0, ENTRY),
        *encode(_form_of("setzi"), 1, LOW),
        *encode(_form_of("runall"), 0, 1, 0),
        *encode(_form_of("sync"), 2),
        *encode(_form_of("br"), 10),
    ]
    return np.array(words, dtype=np.uint32)


def prepared(
    random: np.random.Generator,
    code: NDArray[np.uint32],
    *,
    shared: bool,
    control: int,
    tame: bool = False,
    checked: bool = False,
) -> Tile:
    """A tile with random contents about to launch the code. `tame`: small halves and nothing else.

    `checked`: it makes all checks that native code can make, and some of its memory nobody has written.
    """
    tile = Tile(0, checks=Checks.thorough() if checked else Checks())

    def _floats(random: np.random.Generator, count: int) -> NDArray[np.uint16]:
        pool = _pool(tame)
        begin = 2 * int(random.integers(0, (len(pool) - count) // 2))
        return pool[begin : begin + count]

    for begin, size in ((LOW, 0x8000), (HIGH, 0x10000)):
        data = _floats(random, size // 2)
        tile.write(begin, data.tobytes())
        if checked:
            holes = random.integers(0, size // 8, size // 2048) + (begin - TILE_BASE) // 8
            tile._shadow[holes] = random.choice([0, 0x0F, 0xF0, 0xFC], len(holes))
    tile.write(CODE, supervisor().tobytes())
    tile.write(ENTRY, code.tobytes())
    tile.a[...] = 0
    for worker in range(6):
        tile.a[worker, :8] = _floats(random, 16).view(np.uint32)
        space = 0 if shared else worker * WORKER_SPACE
        tile.m[worker + 1, :12] = random.integers(0, 1 << 32, 12)
        tile.m[worker + 1, OFFSET] = 0 if random.random() < 0.7 else random.integers(0, 4)
        for index, register in enumerate(POINTERS.values()):
            base = HIGH if index < 2 else LOW
            tile.m[worker + 1, register] = base + space + 0x200 * index
        third = HIGH + space + (0xC08 if random.random() < 0.3 else 0x18C08)
        tile.m[worker + 1, PAIR] = packed_low(HIGH + space + 0x800, third)
        tile.m[worker + 1, PAIR + 1] = packed_high(LOW + space + 0x200, third)
        tile.m[worker + 1, STRIDE] = 2 | (4 << 10) | (0x3FE << 20)
        for number in range(0x103, 0x107):
            tile.set_csr(number, int(random.integers(0, 1 << 32)), worker + 1)
        tile.set_csr(0x108, int(_floats(random, 2).view(np.uint32)[0]), worker + 1)
    tile.accumulators[...] = random.standard_normal((6, 32)).astype(np.float32)
    tile.weights[...] = _floats(random, 256).view(np.uint64)
    tile.set_csr(0x20, control)
    tile.pc = CODE
    tile.m[0, 10] = 0
    return tile


@lru_cache(maxsize=2)
def _pool(tame: bool) -> NDArray[np.uint16]:
    """Numbers from which every program takes a stretch: drawing new ones would take as long as running it."""
    random = np.random.default_rng(0)
    if tame:
        return (random.standard_normal(1 << 20) * 0.25).astype(np.float16).view(np.uint16)
    return _wild_floats(random, 1 << 20)


def _wild_floats(random: np.random.Generator, count: int) -> NDArray[np.uint16]:
    """Halves: mostly ordinary, some special; every other run of four holds singles."""
    halves = random.standard_normal(count).astype(np.float16).view(np.uint16)
    rare = random.random(count) < 0.02
    halves[rare] = random.choice(SPECIAL_HALVES, int(rare.sum())).astype(np.uint16)
    words = halves.view(np.uint32)
    single = random.random(len(words)) < 0.3
    words[single] = (random.standard_normal(int(single.sum())) * 100).astype(np.float32).view(np.uint32)
    rare_single = random.random(len(words)) < 0.02
    words[rare_single] = random.choice(SPECIAL_SINGLES, int(rare_single.sum())).astype(np.uint32)
    return words.view(np.uint16)


def differences(one: Tile, other: Tile) -> list[str]:
    """What is not equal between two tiles that did the same, in words."""
    found = []
    if not np.array_equal(one.memory, other.memory):
        places = np.flatnonzero(one.memory != other.memory)
        found.append(f"{len(places)} bytes of memory, the first at {places[0] + TILE_BASE:#x}")
    left, right = one._state.copy(), other._state.copy()
    for state in (left, right):
        # Intermediate results of an instruction, pointers, and the description of the last stop.
        state[at.STOP : at.STOP + 24] = 0
        state[at.POINTERS : at.POINTERS + 16] = 0
    places = np.flatnonzero(left != right)
    found += [f"state word {place}: {left[place]:#x} and {right[place]:#x}" for place in places[:5]]
    if not np.array_equal(one.accumulators, other.accumulators, equal_nan=True):
        found.append("accumulators")
    if not np.array_equal(one.weights, other.weights):
        found.append("weights")
    if not np.array_equal(one._shadow, other._shadow):
        found.append("which memory has been written")
    return found


@dataclass
class Verdict:
    """Totals of a comparison."""

    programs: int = 0
    instructions: int = 0
    native: int = 0
    failure: str = ""


CONTROLS = (0, 0, 0, 0, 1 << 20, 1 << 19, 1 << 16, 2 << 16, 3 << 16, 7, 1 << 19 | 1 << 20)


def compare(
    seed: int,
    forms: list[Form],
    steps: int,
    *,
    loops: bool,
    verdict: Verdict,
    tame: bool = False,
    checked: bool = False,
) -> None:
    """One random program on both engines; a difference ends up in `verdict.failure`."""
    random = np.random.default_rng(seed)
    code = assemble(Source(random, wild=0.0 if tame else Source.wild), forms, steps, loops=loops)
    control = int(random.choice(CONTROLS[:5] if tame else CONTROLS))
    shared = bool(random.random() < 0.15)
    one = prepared(random, code, shared=shared, control=control, tame=tame, checked=checked)
    other = one.copy(0)
    budget = 20_000 if random.random() < 0.9 else int(random.integers(1, 6 * steps + 20))
    before = translator().statistics().launches
    translator().avoid_fast = bool(seed % 3)
    stop = run_tiles([one], budget=budget)[0]
    stop_too = run_translated([other], budget=budget, overrun=0)[0]
    verdict.programs += 1
    verdict.instructions += int(one.counters[1:].sum())
    verdict.native += translator().statistics().launches - before
    found = differences(one, other)
    if stop != stop_too:
        found.insert(0, f"stops {stop} and {stop_too}")
    if found:
        verdict.failure = f"seed {seed} ({steps} steps, loops {loops}): " + "; ".join(found)


def judge(
    programs: int,
    steps: int,
    *,
    loops: bool,
    first_seed: int = 0,
    instructions: int = 0,
    report: bool = False,
    family: str = "",
    checked: bool = False,
) -> Verdict:
    """Compare the engines on so many programs, up to the first difference.

    `family`: only its forms, on tame numbers, so that most programs run natively to their end.
    `instructions`: after so many (a bundle counts once) it is enough. `report`: say how far it is.
    `checked`: with all checks that native code can make.
    """
    verdict = Verdict()
    forms = forms_of(family) if family else worker_forms()
    translator()  # Its library comes from the cache.
    begin = time.monotonic()
    with without_cache():
        for index in range(programs):
            compare(
                first_seed + index,
                forms,
                steps,
                loops=loops,
                verdict=verdict,
                tame=bool(family),
                checked=checked,
            )
            if verdict.failure or 0 < instructions <= verdict.instructions:
                break
            if index % 50 == 49:
                # Each new translation is compared with all that are known.
                translator().forget()
            if report and index % 1000 == 999:
                print(f"{index + 1} programs after {time.monotonic() - begin:.0f} s", flush=True)
    translator().forget()
    translator().avoid_fast = False
    return verdict


def main() -> None:
    """The full counts, and one line that says how it went."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--instructions", type=int, default=1_000_000)
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wanted = options.instructions
    straight = judge(wanted, 40, loops=False, first_seed=options.seed, instructions=wanted, report=True)
    looping = Verdict()
    if not straight.failure:
        looping = judge(options.programs, 12, loops=True, first_seed=options.seed + (1 << 30), report=True)
    verdicts = [straight, looping]
    for family in FAMILIES:
        if not any(verdict.failure for verdict in verdicts):
            count = options.programs // 20
            verdicts.append(judge(count, 24, loops=True, first_seed=options.seed, report=True, family=family))
    failure = "".join(verdict.failure for verdict in verdicts)
    print(
        f"{'DIFFERENT: ' + failure if failure else 'equal'}: {straight.programs} straight and "
        f"{looping.programs} looping programs of every form, "
        f"{sum(verdict.programs for verdict in verdicts[2:])} of {', '.join(FAMILIES)}, "
        f"{sum(verdict.instructions for verdict in verdicts)} instructions, "
        f"{sum(verdict.native for verdict in verdicts)} launches ran natively"
    )


if __name__ == "__main__":
    main()


__all__ = ["REGION1_BASE", "Verdict", "judge", "main"]
