"""The merge of partial attention outputs against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, attention_merge, link_kernels
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

OUT, PARTIAL, STATES = DATA, REGION1_BASE, REGION1_BASE + 0x40000
WORKER_STACKS = (0x58000, 0x6E0)


class Case:
    """`spare` rows between panels and parts, and bytes between states, beyond what is needed."""

    def __init__(
        self,
        rows: int,
        panels: int,
        parts: int,
        *,
        spare: int = 0,
        shift: int = 0,
        partial: int = PARTIAL,
        odd: bool = False,
    ) -> None:
        random = np.random.default_rng(100 * rows + panels)
        self.held = halves(10 * parts + rows, parts, panels + spare, rows + spare, 16, scale=4)
        self.partial = self.held[:, :panels, :rows]
        self.held_states = np.zeros((parts, rows + spare, 2), np.float32)
        self.held_states[:, :, 0] = random.standard_normal((parts, rows + spare)) * 3
        self.held_states[:, :, 1] = random.uniform(1, 50, (parts, rows + spare))
        self.places = {"out": OUT + shift, "partial": partial + shift, "states": STATES + shift}
        self.halves = 2 * panels - odd
        self.scalars = {"rows": rows, "halves": self.halves, "parts": parts}
        self.strides = {
            "panel_stride": 32 * (rows + spare),
            "part_stride": 32 * (rows + spare) * (panels + spare),
            "state_stride": 8 * (rows + spare),
        }

    @property
    def arguments(self) -> dict[str, int]:
        return self.places | self.scalars | self.strides

    @property
    def inputs(self) -> list[tuple[int, NDArray[np.generic]]]:
        return [(self.places["partial"], self.held), (self.places["states"], self.held_states)]

    @property
    def expected(self) -> NDArray[np.float16]:
        states = self.held_states[:, : self.scalars["rows"]]
        return attention_merge.reference(self.partial, states, self.halves)

    def check(self) -> None:
        out, expected = self.places["out"], self.expected
        outputs = [(out, expected.nbytes), WORKER_STACKS]
        outcome = run(attention_merge.SYMBOL, self.arguments, self.inputs, outputs)
        np.testing.assert_array_equal(outcome.array(out, expected), expected)
        assert outcome.cycles == attention_merge.cycles(**self.scalars)


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 9, 13, 20])
@pytest.mark.parametrize("panels", [1, 2, 3, 5])
def test_shapes(rows: int, panels: int) -> None:
    for parts in (1, 2, 3, 7):
        Case(rows, panels, parts).check()
        Case(rows, panels, parts, spare=1, partial=DATA + 0x8000).check()
        Case(rows, panels, parts, spare=parts % 2, odd=True).check()


class OwnCase(Case):
    """The first part lies elsewhere, and the others dense; `straight`: code for their number is linked."""

    def __init__(
        self,
        rows: int,
        panels: int,
        parts: int,
        *,
        spare: int = 0,
        shift: int = 0,
        odd: bool = False,
        straight: bool = False,
    ) -> None:
        super().__init__(rows, panels, parts, shift=shift, odd=odd)
        names = attention_merge.straight_of(parts - 1, rows) if straight else []
        self.linked = [attention_merge.OWN_SYMBOL, *names]
        self.own = np.zeros((panels, rows + spare, 16), np.float16)
        self.own[:, :rows] = self.held[0]
        self.others, self.own_state, self.states = self.held[1:], self.held_states[0], self.held_states[1:]
        del self.places["partial"]
        self.places |= {"own": PARTIAL + 0x30000 + shift, "others": PARTIAL + shift}
        self.places["own_state"] = OUT + 0x4000 + shift
        self.scalars = {"rows": rows, "halves": self.halves, "remote_count": parts - 1}
        self.strides = {"own_stride": 32 * (rows + spare)}

    @property
    def inputs(self) -> list[tuple[int, NDArray[np.generic]]]:
        arrays = {"own": self.own, "own_state": self.own_state, "others": self.others, "states": self.states}
        return [(self.places[name], array) for name, array in arrays.items() if array.size]

    @property
    def expected(self) -> NDArray[np.float16]:
        own = self.own[:, : self.scalars["rows"]]
        return attention_merge.own_reference(own, self.own_state, self.others, self.states, self.halves)

    def check(self) -> None:
        out, expected = self.places["out"], self.expected
        outputs = [(out, expected.nbytes), WORKER_STACKS]
        image = link_kernels(self.linked, {})
        outcome = call(image, attention_merge.OWN_SYMBOL, self.registers, self.inputs, outputs)
        np.testing.assert_array_equal(outcome.array(out, expected), expected)
        straight = len(self.linked) > 1
        assert outcome.cycles == attention_merge.own_cycles(**self.scalars, straight=straight)

    @property
    def registers(self) -> dict[int, int]:
        return KERNELS[attention_merge.OWN_SYMBOL].contract.registers(**self.arguments)

    def check_thoroughly(self) -> None:
        """No races, and nothing unwritten is read."""
        image = link_kernels(self.linked, {})
        result = guarded(attention_merge.OWN_SYMBOL, self.arguments, self.inputs, image)
        np.testing.assert_array_equal(result.read(OUT, self.expected.shape, np.float16), self.expected)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("panels", [1, 2, 3])
def test_own_part_in_place(rows: int, panels: int) -> None:
    for parts in (1, 2, 3, 8):
        OwnCase(rows, panels, parts).check()
        OwnCase(rows, panels, parts, spare=2).check()
        OwnCase(rows, panels, parts, spare=parts % 2, odd=True).check()


def test_own_part_without_work_and_with_most_parts() -> None:
    for case in (
        OwnCase(0, 2, 3),
        OwnCase(2, 0, 3),
        OwnCase(4, 0, 3),
        OwnCase(2, 1, attention_merge.MAXIMUM_PARTS),
    ):
        case.check()


@pytest.mark.parametrize(("rows", "panels"), [(1, 1), (1, 5), (2, 3), (3, 2), (7, 2)])
@pytest.mark.parametrize("odd", [False, True])
def test_own_part_without_races(rows: int, panels: int, odd: bool) -> None:
    OwnCase(rows, panels, 4, odd=odd).check_thoroughly()


@pytest.mark.parametrize("parts", range(2, attention_merge.COUNTS.stop + 1))
def test_code_for_a_number_of_parts(parts: int) -> None:
    """Exact cycles show where it is what runs: not where rows end with half a panel."""
    for rows, panels in ((4, 1), (6, 3), (7, 2), (13, 2), (0, 2), (7, 0)):
        for spare in (0, 2):
            OwnCase(rows, panels, parts, spare=spare, straight=True).check()
        OwnCase(rows, panels, parts, odd=panels > 0, straight=True).check()
    for rows, panels in ((7, 2), (13, 1)):
        OwnCase(rows, panels, parts, straight=True).check_thoroughly()
    scalars = {"rows": 9, "halves": 4, "remote_count": parts - 1}
    faster, slower = (attention_merge.own_cycles(**scalars, straight=straight) for straight in (True, False))
    assert faster < slower


def test_code_for_a_number_of_parts_where_some_do_not_count() -> None:
    for parts in (3, 4):
        case = OwnCase(7, 2, parts, straight=True)
        case.states[0, :4] = case.states[:, 5] = case.own_state[5] = (-65504, 0)
        case.others[0, :, :4] = case.others[:, :, 5] = case.own[:, 5] = 0
        case.check()
        assert np.all(case.expected[:, 5] == 0)
        assert np.any(case.expected[:, :4] != 0)


@pytest.mark.parametrize("parts", range(2, attention_merge.FEW_COUNTS.stop + 1))
def test_code_for_few_rows_and_a_number_of_parts(parts: int) -> None:
    """Exact cycles show that it is what runs, but where rows end with half a panel."""
    for rows in (1, 2, 3):
        for panels in (1, 2, 3, 4, 7):
            OwnCase(rows, panels, parts, spare=panels % 2, straight=True).check()
        OwnCase(rows, 2, parts, spare=1, odd=True, straight=True).check()
        scalars = {"rows": rows, "halves": 2, "remote_count": parts - 1}
        faster, slower = (
            attention_merge.own_cycles(**scalars, straight=straight) for straight in (True, False)
        )
        assert faster < slower
    OwnCase(3, 0, parts, straight=True).check()
    for rows, panels in ((1, 5), (2, 1), (3, 2)):
        OwnCase(rows, panels, parts, spare=1, straight=True).check_thoroughly()


def test_code_for_few_rows_where_some_parts_do_not_count() -> None:
    for parts in range(3, attention_merge.FEW_COUNTS.stop + 1):
        case = OwnCase(3, 2, parts, straight=True)
        case.states[0, :2] = case.states[:, 2] = case.own_state[2] = (-65504, 0)
        case.others[0, :, :2] = case.others[:, :, 2] = case.own[:, 2] = 0
        case.check()
        assert np.all(case.expected[:, 2] == 0)
        assert np.any(case.expected[:, :2] != 0)


def test_code_for_few_rows_does_not_depend_on_the_call_before() -> None:
    cases = [OwnCase(3, 3, 8, straight=True), OwnCase(1, 5, 8, straight=True, shift=0x8000)]
    arguments = [case.arguments for case in cases]
    image = twice(attention_merge.OWN_SYMBOL, arguments, cases[0].linked[1:])
    outputs = [(case.places["out"], case.expected.nbytes) for case in cases]
    inputs = [item for case in cases for item in case.inputs]
    outcome = call(image, "driver", {}, inputs, [*outputs, WORKER_STACKS])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["out"], case.expected), case.expected)


@pytest.mark.parametrize("parts", [3, 4, 7, 8])
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("straight", [False, True])
def test_order_of_sums(parts: int, rows: int, straight: bool) -> None:
    """Rows whose weights, one in a column each, depend on the order in which sums are taken."""
    random = np.random.default_rng(parts)
    states = np.zeros((parts, 120_000, 2), np.float32)
    states[:, :, 0] = random.standard_normal(states.shape[:2])
    states[:, :, 1] = random.uniform(1, 50, states.shape[:2])
    columns = np.zeros((parts, 1, states.shape[1], 16), np.float16)
    for part in range(parts):
        columns[part, :, :, part] = 1
    others = [0, 2, 1, *range(3, parts)]
    found = attention_merge.reference(columns, states, 2)
    differs = np.any(attention_merge.reference(columns[others], states[others], 2) != found, axis=(0, 2))
    chosen = np.flatnonzero(differs)[:rows]
    assert len(chosen) == rows
    case = OwnCase(rows, 1, parts, straight=straight)
    case.own[:], case.others = columns[0, :, chosen].swapaxes(0, 1), columns[1:, :, chosen]
    case.own_state, case.states = states[0, chosen], states[1:, chosen]
    np.testing.assert_array_equal(case.expected, found[:, chosen])
    case.check()


def test_code_for_another_number_of_parts_is_left_alone() -> None:
    assert attention_merge.straight_of(attention_merge.COUNTS.stop, 4) == []
    assert attention_merge.straight_of(attention_merge.FEW_COUNTS.stop, 3) == []
    assert attention_merge.straight_of(2, 0) == attention_merge.straight_of(0, 2) == []
    for rows, other in ((9, "attention_merge_own_f16_of_3"), (3, "attention_merge_own_f16_few_of_3")):
        case = OwnCase(rows, 2, 3)
        expected = case.expected
        image = link_kernels([*case.linked, other], {})
        outputs = [(case.places["out"], expected.nbytes), WORKER_STACKS]
        outcome = call(image, attention_merge.OWN_SYMBOL, case.registers, case.inputs, outputs)
        np.testing.assert_array_equal(outcome.array(case.places["out"], expected), expected)
        assert outcome.cycles == attention_merge.own_cycles(**case.scalars, straight=False)


def test_most_parts() -> None:
    Case(7, 1, attention_merge.MAXIMUM_PARTS).check()


def test_no_work() -> None:
    for rows, panels in ((0, 3), (7, 0), (0, 0)):
        Case(rows, panels, 2).check()


@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("odd", [False, True])
def test_no_races_and_nothing_unwritten(rows: int, odd: bool) -> None:
    case = Case(rows, 3, 4, odd=odd)
    result = guarded(attention_merge.SYMBOL, case.arguments, case.inputs)
    np.testing.assert_array_equal(result.read(OUT, case.expected.shape, np.float16), case.expected)


def test_parts_and_rows_that_do_not_count() -> None:
    """A part without columns has no weight; a row without any part is 0."""
    case = Case(7, 2, 3)
    case.held_states[1, :4] = (-65504, 0)
    case.held_states[:, 5] = (-65504, 0)
    case.held[1, :, :4] = 0
    case.held[:, :, 5] = 0
    case.check()
    assert np.all(case.expected[:, 5] == 0)
    assert np.all(np.isfinite(case.expected))


def test_against_double() -> None:
    case = Case(9, 4, 6)
    states = case.held_states.astype(np.float64)
    weights = np.exp(states[:, :, 0] - states[:, :, 0].max(axis=0))
    weights /= (weights * states[:, :, 1]).sum(axis=0)
    terms = weights[:, None, :, None] * case.partial.astype(np.float64)
    # Half an ulp for each difference (twice: in the sum too), exponential (twice), weight, product, result.
    difference = states[:, :, 0].max(axis=0) - states[:, :, 0]
    share = (weights * states[:, :, 1] * (difference + 1)).sum(axis=0)
    spread = (np.abs(terms) * (difference + 3.1 + share)[:, None, :, None]).sum(axis=0)
    bound = 2.0**-11 * (spread + np.abs(terms.sum(axis=0))) + 2.0**-24
    assert np.all(np.abs(case.expected - terms.sum(axis=0)) <= bound)


def test_a_call_does_not_depend_on_the_one_before() -> None:
    cases = [Case(7, 3, 4), Case(2, 1, 2, shift=0x8000)]
    image = twice(attention_merge.SYMBOL, [case.arguments for case in cases])
    outputs = [(case.places["out"], case.expected.nbytes) for case in cases]
    inputs = [item for case in cases for item in case.inputs]
    outcome = call(image, "driver", {}, inputs, [*outputs, WORKER_STACKS])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["out"], case.expected), case.expected)


def test_formula_takes_arrays() -> None:
    rows = np.array([0, 1, 9, 48])
    for count in (5, 6):
        each = [int(attention_merge.cycles(int(r), count, 4)) for r in rows]
        assert attention_merge.cycles(rows, count, 4).tolist() == each
