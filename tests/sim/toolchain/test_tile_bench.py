"""One tile's code through the small Python interface and through `tilewright sim`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tilewright.cli import sim, toolchain
from tilewright.errors import LinkError, SimulationError, UsageError
from tilewright.ipu21.simulator.choice import REFERENCE, TRANSLATED
from tilewright.ipu21.simulator.translate.tiles import translator
from tilewright.ipu21.toolchain import assemble, link
from tilewright.tile import Checks, TileBench, TileProgram
from tilewright.tile.content import vertex_symbol

pytestmark = pytest.mark.sim

SOURCE = """
#include <arch/gc_tile_defines.h>
#define out m2
#define in m3
#define count m4
.worker
.section .text.scale,"ax"
.globl __runCodelet_ns__Scale___float_true
.align 8
__runCodelet_ns__Scale___float_true:
    ld32 $out, $mvertex_base, $mzero, 0
    ld32 $in, $mvertex_base, $mzero, 1
    ldz16 $count, $mvertex_base, $mzero, 4
    ld32 $a1, $mvertex_base, $mzero, 3
    add $count, $count, -1
loop:
    ld32step $a0, $mzero, $in+=, 1
    f32mul $a0, $a0, $a1
    st32step $a0, $mzero, $out+=, 1
    brnzdec $count, loop
    exitz $mzero
.section .text.share,"ax"
.globl share
share:  // worker w adds its number plus one to word w
    get $m0, $WSR
    and $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK
    ld32 $m1, $mvertex_base, $mzero, 0
    add $m2, $m0, 1
    add $m2, $m2, $m5
    shl $m0, $m0, 2
    add $m1, $m1, $m0
    st32 $m2, $m1, $mzero, 0
    exitz $mzero
.supervisor
.section .text.sup,"ax"
.globl sum, table
sum: add $m0, $m2, $m3
    st32 $m0, $m4, $mzero, 0
    br $lr
.globl bad
bad: ld32 $m0, $m2, $mzero, 0
    br $lr
.globl endless
endless: bri endless
.section .data.table,"aw"
table: .long 7, 8, 9
"""
VERTEX = "ns::Scale<float,true>"


@pytest.fixture
def bench() -> TileBench:
    return TileBench(TileProgram.from_source(SOURCE, filename="k.S"), checks=Checks(poison=True))


def test_a_vertex_with_its_state(bench: TileBench) -> None:
    x = bench.put("x", np.arange(8, dtype=np.float32))
    y = bench.reserve("y", "f32", (2, 4))
    state = bench.vertex_state(y, x, ("u16", 8), ("f32", 2.5))
    result = bench.run_vertex(vertex_symbol(VERTEX), state)
    np.testing.assert_array_equal(result.array("y"), np.arange(8, dtype=np.float32).reshape(2, 4) * 2.5)
    assert result.slots.tolist() == [6 + 4 * 8, 0, 0, 0, 0, 0]
    # Two setzi and the wait for their registers, the launch, 38 turns of six cycles, release, return.
    assert result.cycles == 7 + 10 + 38 * 6 + 18 + 6


def test_one_state_for_six_workers_or_one_each(bench: TileBench) -> None:
    words = bench.put("words", np.zeros(6, np.uint32))
    shared = bench.vertex_state(words)
    result = bench.run_vertex("share", shared, workers=6, registers={"m5": 10})
    assert result.array("words").tolist() == [11, 12, 13, 14, 15, 16]
    others = [bench.put(f"w{index}", np.zeros(6, np.uint32)) for index in range(3)]
    result = bench.run_vertex("share", [bench.vertex_state(item) for item in others], registers={"m5": 20})
    assert [bench.array(item).tolist() for item in others] == [
        [21, 0, 0, 0, 0, 0],
        [0, 22, 0, 0, 0, 0],
        [0, 0, 23, 0, 0, 0],
    ]
    even = [bench.vertex_state(item, ("u32", 0), ("u32", 0), ("u32", 0)) for item in [words] * 6]
    bench.run_vertex("share", even, registers={"m5": 30})
    assert bench.array("words").tolist() == [31, 32, 33, 34, 35, 36]


def test_a_function_and_what_stays(bench: TileBench) -> None:
    y = bench.reserve("y", "u32", 1)
    assert bench.call("sum", {"m2": 3, "m3": 4, "m4": y}).array("y").tolist() == [7]
    result = bench.call("sum", {"$m2": "table+4", 3: 0, "m4": "y"})
    assert result.array("y").tolist() == [bench.program.address("table") + 4]
    assert result.cycles == 6 + 1 + 6 and result.instructions == 3
    assert bench.array(bench.reserve("t", "u32", 3, at="table")).tolist() == [7, 8, 9]


def test_engines_agree_and_each_is_the_one_asked_for(bench: TileBench) -> None:
    results, launches = {}, {}
    for name in (REFERENCE, TRANSLATED):
        other = TileBench(bench.program, engines=name)
        x = other.put("x", np.arange(300, dtype=np.float32))
        y = other.reserve("y", "f32", 300)
        state = other.vertex_state(y, x, ("u16", 300), ("f32", 0.1))
        before = translator().statistics().launches
        results[name] = other.run_vertex(vertex_symbol(VERTEX), state)
        launches[name] = translator().statistics().launches - before
    one, two = results[REFERENCE], results[TRANSLATED]
    assert (one.cycles, one.instructions, one.slots.tolist()) == (
        two.cycles,
        two.instructions,
        two.slots.tolist(),
    )
    for first, second in ((one.m, two.m), (one.a, two.a), (one.array("y"), two.array("y"))):
        np.testing.assert_array_equal(first, second)
    assert launches == {REFERENCE: 0, TRANSLATED: 1}
    with pytest.raises(UsageError, match="no engine 'quick'"):
        TileBench(bench.program, engines="quick")


DRAW = """
.worker
.globl draw
draw:
    ld32 $m0, $mvertex_base, $mzero, 0
    get $m1, $WSR
    and $m1, $m1, 7
    urand32 $a0
    uget $a1, $TAS
    st32 $a0, $m0, $mzero, $m1
    add $m0, $m0, 24
    st32 $a1, $m0, $mzero, $m1
    exitz $mzero
.globl seed
seed:
    uput $PRNG_SEED, $a0
    exitz $mzero
"""


def test_control_registers_of_workers() -> None:
    program = TileProgram.from_source(DRAW)
    bench, other = TileBench(program), TileBench(program)
    for item in (bench, other):
        item.put("y", np.zeros(12, np.uint32))
    bench.run_vertex(
        "draw", bench.vertex_state("y"), workers=2, csrs={"PRNG_SEED": 0x12345, "TAS": 7, "CR": 0}
    )
    # The same as a seed that code puts there.
    other.run_vertex("seed", workers=2, registers={"a0": 0x12345})
    other.run_vertex("draw", other.vertex_state("y"), workers=2)
    assert bench.array("y").tolist()[:2] == other.array("y").tolist()[:2] and bench.array("y")[0]
    assert bench.array("y").tolist()[2:] == [0] * 4 + [7, 7] + [0] * 4
    with pytest.raises(UsageError, match="FP_CTL is set by every launch"):
        bench.run_vertex("draw", csrs={"FP_CTL": 0})


def test_faults_name_the_place(bench: TileBench) -> None:
    with pytest.raises(UsageError, match="no symbol sums"):
        bench.call("sums")
    other = TileBench(bench.program)
    with pytest.raises(SimulationError, match="instruction budget"):
        other.call("endless", budget=1000)
    with pytest.raises(SimulationError, match="outside tile memory") as caught:
        TileBench(bench.program).call("bad", {"m2": 0x10})
    line = next(number for number, text in enumerate(SOURCE.split("\n"), 1) if text.startswith("bad:"))
    assert caught.value.symbol == f"bad, k.S:{line}" and caught.value.context == "supervisor"
    assert "`ld32 $m0, $m2, $m15, 0`" in str(caught.value)
    x = bench.reserve("x", "f32", 4)
    with pytest.raises(SimulationError, match="nobody has written") as caught:
        bench.run_vertex(vertex_symbol(VERTEX), bench.vertex_state(x, x, ("u16", 4), ("f32", 1)))
    assert caught.value.context == "worker 0" and "+0x14, k.S:" in str(caught.value)
    with pytest.raises(UsageError, match="an earlier run"):
        bench.call("sum")


def test_operands_get_elements_of_their_own(bench: TileBench) -> None:
    from tilewright.ipu21.machine.memory import effective_element

    items = [bench.reserve(f"b{index}", "u8", 100) for index in range(20)]
    assert len({effective_element(item.address) for item in items[:12]}) == 12
    spans = sorted((item.address, item.end) for item in items)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    with pytest.raises(UsageError, match="no room"):
        bench.reserve("big", "u8", 600_000)


def test_vertex_names() -> None:
    assert vertex_symbol("a::B< half , true >") == "__runCodelet_a__B___half_true"
    assert vertex_symbol("Fill<unsigned int,a::E::X>") == "__runCodelet_Fill___unsigned_int_a__E__X"
    assert vertex_symbol("n::my_V<Op::BIT_AND>") == "__runCodelet_n__my___V___Op__BIT___AND"
    assert vertex_symbol("__runCodelet_x") == "__runCodelet_x" and vertex_symbol("x") == "__runCodelet_x"


# ---- the command


def run(tmp_path: Path, *arguments: str, source: str = SOURCE) -> str:
    app = typer.Typer()
    sim.register(app)
    toolchain.register(app)
    path = tmp_path / "k.S"
    path.write_text(source)
    result = CliRunner().invoke(app, ["sim", str(path), *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_command_runs_a_vertex(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6))
    report = json.loads(
        run(
            tmp_path, "--vertex", VERTEX, "--mem", f"x=@{tmp_path}/x.npy:f32",
            "--mem", "y@region0=empty:f32:2x3", "--state", "y,x,u16:6,f32:0.5", "--show", "y",
            "--show", "table:u32:3", "--check", "all",
            "--out", f"y:u32={tmp_path}/y.npy", "--json", "--trace",
        )
    )  # fmt: skip
    assert report["memory"]["y"]["values"] == [[0, 0.5, 1], [1.5, 2, 2.5]]
    assert report["memory"]["y"]["address"] < 0x80000
    assert report["memory"]["table"]["values"] == [7, 8, 9]
    assert np.load(tmp_path / "y.npy").view(np.float32).tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert report["instructions"]["workers"] == [30, 0, 0, 0, 0, 0]
    assert len(report["trace"]) == 35 and report["trace"][5]["reads"]["$m13"] > 0x4C000
    assert report["registers"]["worker 0"]["a1"] == 0x3F000000


def test_command_runs_a_function_of_any_file(tmp_path: Path) -> None:
    text = run(
        tmp_path, "--entry", "sum", "--mem", "y=u32:1", "--reg", "m2=0x20", "--reg", "m3=table+4",
        "--reg", "m4=y", "--show", "y", "--trace",
    )  # fmt: skip
    assert "<sum+0x4>" in text and "cycles" in text and "uint32 1" in text
    (tmp_path / "k.o").write_bytes(assemble(SOURCE).to_bytes())
    image = link([assemble(SOURCE)], entry="sum", roots=["table"])
    (tmp_path / "k.elf").write_bytes(image.to_elf())
    for name in ("k.o", "k.elf"):
        program = TileProgram.from_files([tmp_path / name])
        bench = TileBench(program)
        y = bench.put("y", np.zeros(1, np.uint32))
        assert bench.call("sum", {"m2": 1, "m3": 2, "m4": y}).array("y")[0] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name what to run"),
        (["--entry", "sum", "--vertex", "x"], "name what to run"),
        (["--entry", "sum", "--state", "1"], "--worker"),
        (["--entry", "sum", "--mem", "x"], r"NAME\[@PLACE\]=CONTENT"),
        (["--entry", "sum", "--mem", "x=zeros:f17:3"], "no element type 'f17'"),
        (["--entry", "sum", "--mem", "x=zeros:f16:axb"], "no shape"),
        (["--entry", "sum", "--mem", "x=zeros:f16:999999999"], "do not fit a tile"),
        (["--entry", "sum", "--mem", "x=u8:300,x"], "'300' is no u8 number"),
        (["--entry", "sum", "--mem", "x=u32:1.5"], "'1.5' is no u32 number"),
        (["--entry", "sum", "--mem", "x=f16:1,1e6"], "'1e6' is no f16 number"),
        (
            ["--entry", "sum", "--reg", "m2=0x1ffffffff"],
            "0x1ffffffff does not fit the 32 bits",
        ),
        (["--entry", "sum", "--csr", "TAS=1"], "TAS is the workers'"),
        (["--entry", "sum", "--csr", "FP_ICTL=-0xffffffff"], "32 bits of control register"),
        (["--entry", "sum", "--out", "table:u32:2"], "the file is missing"),
        (["--entry", "sum", "--show", "table:u32:2=x.npy"], "--show writes no file"),
        (["--entry", "sum", "--engines", "translated", "--trace"], "reference engine"),
        (["--worker", "--entry", "share", "--state", "f16:1e10"], "no f16 number"),
        (["--entry", "sum", "--mem", "x@0x10=u8:1"], "outside tile memory"),
        (["--entry", "sum", "--mem", "x=@nowhere.npy"], "nowhere.npy"),
        (["--entry", "sum", "--show", "table"], "NAME:TYPE:SHAPE"),
        (["--entry", "sum", "--reg", "m12=1"], "m0..m11"),
        (["--entry", "sum", "--reg", "m2=wat"], "no symbol wat"),
        (["--entry", "sum", "--check", "wat"], "no check wat"),
        (["--worker", "--entry", "share", "--workers", "7"], "7 workers"),
        (["--worker", "--entry", "share", "--state", "u16:70000"], "no u16 number"),
    ],
)
def test_command_refuses(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(tmp_path, *arguments)


def test_files_that_a_type_cannot_hold_are_refused(tmp_path: Path) -> None:
    for name, array, kind, message in (
        (
            "a",
            np.array([[1.0, 2.0], [3.0, 7e4]]),
            "f16",
            r"\(1, 1\) is 70000.0, which float16",
        ),
        ("b", np.array([1, -1]), "u16", r"element \(1,\) is -1, which uint16"),
        ("c", np.array([1.0, 2.5]), "i32", r"element \(1,\) is 2.5"),
        ("d", np.array(["x"]), "f16", "are no numbers"),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises(UsageError, match=message):
            run(tmp_path, "--entry", "sum", "--mem", f"x=@{tmp_path}/{name}.npy:{kind}")


def test_numbers_that_json_has_not_keep_their_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1, np.nan], [-np.inf, 2]], np.float16))
    arguments = ["--entry", "sum", "--mem", f"x=@{tmp_path}/x.npy", "--show", "x", "--reg", "m4=x+4"]
    report = json.loads(run(tmp_path, *arguments, "--json"))
    # The function stores 0 over the second row.
    assert report["memory"]["x"]["values"] == [[1, "nan"], [0, 0]]
    assert "[[ 1. nan]\n [ 0.  0.]]" in run(tmp_path, *arguments)


def test_command_names_undefined_entries(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="undefined: zum"):
        run(tmp_path, "--entry", "zum")
