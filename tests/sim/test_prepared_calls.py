"""Calls that the compiler prepares: right results under all checks, and the cycles that were predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.graph import Graph
from tilewright.ipu21.compile import plan_for_ipu21
from tilewright.ipu21.emit.lines import Line, early, last_issue
from tilewright.ipu21.emit.moving import move_lines, reset_lines
from tilewright.ipu21.emit.prepared import Moving, Prepared, PreparedCalls
from tilewright.ipu21.emit.step_code import SHADOW, ClassProgram
from tilewright.ipu21.isa.decode import decode
from tilewright.ipu21.kernels.tail import Tail
from tilewright.ipu21.lower.calls import Call
from tilewright.ipu21.lower.tile_work import TileClass
from tilewright.profiling import ProfileBuilder
from tilewright.profiling.query import pieces_of

pytestmark = pytest.mark.sim

LAYERS = 3


def layers(hidden: int) -> Graph:
    """Products, activation, residual and norm in a loop whose weights, biases and scales walk along."""
    random = np.random.default_rng(5)

    def weights(*shape: int) -> Any:
        return (random.normal(size=(LAYERS, *shape)) * shape[0] ** -0.5).astype(np.float32)

    values = {"w": weights(48, hidden), "v": weights(hidden, 48)}
    values |= {"b": weights(hidden), "g": 1 + weights(48), "s": weights(48)}

    def layer(x: Any, w: Any, v: Any, b: Any, g: Any, s: Any) -> Any:
        return ops.layer_norm(ops.gelu(x @ w + b, approximate="none") @ v + x, g, s, epsilon=1e-5)

    return tw.trace(lambda x: ops.repeat(layer, LAYERS, x, values), x=TensorType((40, 48)))


@pytest.mark.parametrize(("hidden", "tiles"), [(96, 1), (96, 20), (160, 60)])
def test_results_and_cycles(hidden: int, tiles: int) -> None:
    graph = layers(hidden)
    x = np.random.default_rng(6).normal(size=(40, 48)).astype(np.float32)
    package = tw.compile(graph, tiles=tiles, check=True)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        for _ in range(2):  # the first iteration's values must come back
            found = session.run({"x": x})["output"]
        record = session.last_run
    assert np.abs(found - graph.evaluate({"x": x})["output"]).max() < 0.02
    assert record is not None and package.debug is not None and package.debug.program is not None
    program = package.debug.program
    builder = ProfileBuilder(package, name="layers", device="sim")
    builder.add(record)
    rows = pieces_of(builder.profile()).rows
    compared = 0
    for index, (step, info) in enumerate(zip(package.profile.steps, program.steps, strict=True)):
        if step.kind == "compute":
            mine = rows[(rows["step"] == index) & (rows["context"] == 0)]
            longest = int((mine["end"] - mine["begin"]).max())
            assert longest == info.cycles, step.name
            compared += 1
    assert compared >= 6


def test_all_calls_of_a_network_are_prepared() -> None:
    fitted = plan_for_ipu21(layers(160), tiles=60)
    calls = PreparedCalls(fitted.work, fitted.placement, fitted.runtime.active)
    calls.place(0x60000)
    for step, item in enumerate(fitted.work.work):
        if isinstance(item, Call):
            for tile_class in fitted.work.classes:
                if item.active[tile_class.representative]:
                    assert calls.of(step, tile_class.index) is not None
    moving = calls.moving(0, 0, len(fitted.work.work))
    assert moving and all(word.step for word in moving)


def test_iterations_that_differ_unevenly_are_called_in_full() -> None:
    """A walk whose third step is longer is no progression."""
    fitted = plan_for_ipu21(layers(160), tiles=60)
    calls = PreparedCalls(fitted.work, fitted.placement, fitted.runtime.active)
    step = next(step for step, item in enumerate(fitted.work.work) if isinstance(item, Call) and item.strides)
    made = calls._steps[step]
    bent = {number: values.copy() for number, values in made.arguments.items()}
    walking = next(number for number, values in bent.items() if values[0] != values[1])
    bent[walking][2] += 16
    made.arguments.update(bent)
    calls.place(0x60000)
    assert calls.of(step, made.classes[0]) is None
    assert calls.of(step, made.classes[1]) is not None


@pytest.mark.parametrize("count", [1, 7, 8, 30])
@pytest.mark.parametrize("step", [16, 0x8000, 0xFFFFFFF0, 0x12345678])
def test_words_move_and_come_back(count: int, step: int) -> None:
    """On a model of the few instructions in use."""
    moving = [Moving(8 * index, 0xF00D0000 + index, step + 4 * (index % 2)) for index in range(count)]
    memory: dict[int, int] = {}
    area = 0x5D000
    _execute(reset_lines(moving, area), memory)
    for iteration in range(3):
        for word in moving:
            assert memory[area + word.offset] == (word.first + iteration * word.step) & 0xFFFFFFFF
        _execute(move_lines(moving, area), memory)
    assert len(memory) == count


def _moves(moving: list[Moving]) -> list[Line]:
    """The code that moves words on, once it has proved right."""
    memory: dict[int, int] = {}
    area = 0x5D000
    _execute(reset_lines(moving, area), memory)
    lines = move_lines(moving, area)
    for iteration in range(4):
        found = {word.offset: memory[area + word.offset] for word in moving}
        assert found == {word.offset: (word.first + iteration * word.step) & 0xFFFFFFFF for word in moving}
        _execute(lines, memory)
    return lines


def test_words_that_keep_their_distance_follow_from_one() -> None:
    # The base; six words of two values: one loaded and moved on, one derived from it, all stored.
    values = [0x90000, 0x90010] * 3
    assert len(_moves([Moving(40 * at, value, 64) for at, value in enumerate(values)])) == 1 + 1 + 1 + 1 + 6
    # As far as an instruction adds.
    for distance, lines in ((0x7FFF, 1 + 1 + 1 + 1 + 2), (0x8000, 1 + 2 * 3)):
        assert len(_moves([Moving(0, 0x80000, 64), Moving(4, 0x80000 + distance, 64)])) == lines
    # Others have a step of their own, which may need a register.
    assert len(_moves([Moving(0, 0x80000, 64), Moving(4, 0x80000, 32)])) == 1 + 2 * 3
    assert len(_moves([Moving(0, 0x80000, 0x9000), Moving(4, 0x80000, 0xA000)])) == 1 + 2 * 4


def test_moving_words_of_many_families_waits_for_little() -> None:
    random = np.random.default_rng(5)
    moving = [
        Moving(
            4 * at, 0x80000 + int(random.integers(16)) * 0x1804, int(random.choice([16, 32, 0x9000, 0x11000]))
        )
        for at in range(90)
    ]
    lines = _moves(moving)
    assert last_issue(lines) <= 1.25 * len(lines) < 3 * 90


@pytest.mark.parametrize("count", [1, 2, 5, 20, 60])
def test_the_same_instructions_earlier(count: int) -> None:
    random = np.random.default_rng(count)
    steps = random.choice([16, 32, 0x9000], count).tolist()
    values = (0x80000 + random.integers(4, size=count) * 0x1804).tolist()
    moving = [Moving(4 * at, value, step) for at, (value, step) in enumerate(zip(values, steps, strict=True))]
    lines = move_lines(moving, 0x5D000)
    other = early(lines)
    assert sorted(other) == sorted(lines) and last_issue(other) <= last_issue(lines)
    memories: list[dict[int, int]] = [{}, {}]
    for order, memory in zip((lines, other), memories, strict=True):
        _execute(reset_lines(moving, 0x5D000), memory)
        for _ in range(3):
            _execute(order, memory)
    assert memories[0] == memories[1]


def test_instructions_that_wait_let_others_pass_that_do_not() -> None:
    # One value read twice, and a register that is used again: 3 keeps its meaning.
    lines = [Line(1, 1), Line(2, 2, (1,)), Line(3, -1, (2,)), Line(4, 2), Line(5, -1, (2,)), Line(6, 3)]
    order = [line.word for line in early(lines)]
    assert order == [1, 6, 2, 3, 4, 5]
    assert early([]) == []


def test_words_beyond_the_reach_of_one_register() -> None:
    moving = [Moving(offset, offset, 4) for offset in (0, 4, 16380, 16384, 40000)]
    memory: dict[int, int] = {}
    _execute(reset_lines(moving, 0x5D000), memory)
    assert memory == {0x5D000 + word.offset: word.first for word in moving}


def _execute(lines: list[Any], memory: dict[int, int]) -> None:
    from tilewright.ipu21.isa.decode import decode

    m = [0] * 16
    for line in lines:
        instruction = decode(line.word)
        name, operands = instruction.form.mnemonic, instruction.operands
        if name == "setzi":
            m[operands[0]] = operands[1]
        elif name == "or":
            m[operands[0]] = m[operands[1]] | operands[2]
        elif name == "add":
            other = m[operands[2]] if instruction.form.operands[2].kind == "mreg" else operands[2]
            m[operands[0]] = (m[operands[1]] + other) & 0xFFFFFFFF
        elif name == "ld32":
            m[operands[0]] = memory[m[operands[1]] + 4 * operands[3]]
        else:
            assert name == "st32"
            memory[m[operands[1]] + 4 * operands[3]] = m[operands[0]]


def test_steps_begin_behind_the_wait_for_the_one_before() -> None:
    """What the next step does in the shadow of a launch moves the beginnings of idle steps between them."""
    launch = Tail(frozenset((9, 11)), (9, 11, 0))
    prepared = Prepared(0x4D000, launch, {9: 0x4D100, 11: 0x5C900}, {}, (), (), 100)
    tile_class = TileClass(0, np.array([0]), {})
    program = ClassProgram(tile_class, lambda _: 0, {}, 0x5D000, 0x5C800)

    def compute(step: int, *, active: bool) -> None:
        call = Call("gemm_f16", np.array([active]), [], {}, [], {})
        program.compute(call, step, step, prepared if active else None)

    compute(0, active=True)
    compute(1, active=False)
    compute(2, active=True)
    names = [decode(word).form.mnemonic for word in program.code.words]
    assert names == ["setzi", "setzi", "runall", "setzi", "setzi", "sync", "runall", "sync"]
    assert program.code.marks == [(0, 0), (24, 1), (24, 2)]


@pytest.mark.parametrize("launched", [True, False])
def test_loops_close_in_the_shadow_of_a_launch(launched: bool) -> None:
    """Nothing is stored until the workers are waited for, and what is done before costs nothing."""
    program = ClassProgram(TileClass(0, np.array([0]), {}), lambda _: 0, {}, 0x5D000, 0x5C800)
    head = program.enter_loop([])
    if launched:
        launch = Tail(frozenset((9, 11)), (9, 11, 0))
        prepared = Prepared(0x4D000, launch, {9: 0x4D100, 11: 0x5C900}, {}, (), (), 100)
        program.compute(Call("gemm_f16", np.array([True]), [], {}, [], {}), 0, 0, prepared)
    before = program.code.cycles.get(0, 0)
    begin = len(program.code.words)
    program.close_loop(head, 3, [Moving(0, 5, 8), Moving(4, 7, 8)], 0)
    names = [decode(word).form.mnemonic for word in program.code.words[begin - launched :]]
    hidden = names[: names.index("sync")] if launched else []
    assert names.count("st32") == 3 and names[-1] == "brnz"
    assert names.count("ld32") == 2 and hidden.count("ld32") == 2 * launched
    assert set(hidden) <= {"setzi", "ld32"} and len(hidden) <= SHADOW
    # The wait for an address and that for what it leads to are over.
    assert program.code.cycles[0] - before == (20 if launched else 32)


def test_frames_give_way_where_a_loop_calls_too_much() -> None:
    """Twelve turns of three attentions of four heads: with frames for all, no program could be executed."""
    random = np.random.default_rng(0)
    w = (random.normal(size=(2, 16, 16)) / 4).astype(np.float32)

    def layer(x: Any, w: Any) -> Any:
        y = ops.attention(x, x, x, heads=4, scale=0.25)
        y = ops.attention(y, x, y, heads=4, scale=0.25)
        return ops.attention(y, y, x, heads=4, scale=0.25) @ w + x

    graph = tw.trace(lambda x: ops.repeat(layer, 2, x, w), x=TensorType((24, 16, 16)))
    x = random.normal(size=(24, 16, 16)).astype(np.float32)
    package = tw.compile(graph, tiles=2)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        found = session.run({"x": x})["output"]
    assert np.abs(found - graph.evaluate({"x": x})["output"]).max() < 0.02
