"""The debugger stops where it was told, changes nothing, and tells what is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from planted_faults import (
    code_words,
    executed,
    images,
    known_program,
    package,
    step_of,
    with_words,
    wrong_kernel,
)
from typer.testing import CliRunner

from tilewright.cli.main import app
from tilewright.debugging import Debugger
from tilewright.debugging.breakpoints import breakpoint_at, place
from tilewright.debugging.commands import HELP, Commands
from tilewright.debugging.kernel_source import kernel_text
from tilewright.errors import SimulationError, UsageError
from tilewright.ipu21.isa import build
from tilewright.ipu21.isa.decode import decode
from tilewright.package import save_package
from tilewright.runtime import Session, open_device

pytestmark = pytest.mark.sim


def kept(number: int) -> str:
    """Name of the operator that does the `number`-th layer's product and what is fused with it."""
    return known_program().doing(f"matmul_{number}")


def root_kernel() -> str:
    return known_program().steps[step_of(kept(0), "root")].kernel


def debugger() -> Debugger:
    return Debugger(package(), {"x": images()})


def test_stops_in_order_of_the_program_and_the_run_ends_as_it_would_have() -> None:
    with open_device("sim") as device, Session(device, package()) as session:
        plain = session.run({"x": images()})["logits"]
        record = session.last_run
    steps = package().profile.steps
    second = next(n for n, step in enumerate(known_program().steps) if step.operation == kept(1))
    phase = [step.name for step in steps[second + 1 :] if step.kind == "exchange"][-1]
    with debugger() as found:
        # An operator that is fused with others is done by their steps.
        for kind, name in (("operator", "matmul_1"), ("phase", phase), ("operator", kept(2))):
            found.break_at(kind, name)
        reasons, cycles = [], []
        while (stopped := found.resume()) is not None:
            reasons.append((stopped.reason, stopped.step, stopped.tiles))
            cycles.append(stopped.cycle)
        assert reasons[0][1] == steps[second].name and phase in [step for _, step, _ in reasons]
        assert len(reasons) == 3 and {tiles for _, _, tiles in reasons} == {16}
        assert cycles == sorted(cycles) and found.over
        assert found.outputs is not None and np.array_equal(found.outputs["logits"], plain)
        assert found._session is not None and found._session.last_run is not None and record is not None
        assert found._session.last_run.cycles == record.cycles
        with pytest.raises(UsageError, match="the run is over"):
            found.resume()


def test_phases_and_operators_one_by_one() -> None:
    with debugger() as found:
        found.break_at("operator", kept(0))
        found.resume()
        found.breakpoints.clear()
        operators = []
        while (stopped := found.step_operator()) is not None:
            operators.append(stopped.reason)
        names = [f"operator {operation}" for operation in package_operations()]
        assert operators == names[1:]
    with debugger() as found:
        phases = []
        while (stopped := found.step_phase()) is not None:
            phases.append(stopped.step)
        kinds = {step.name: step.kind for step in package().profile.steps}
        assert all(kinds[name] in ("exchange", "host") for name in phases)
        assert phases == [s.name for s in package().profile.steps[2:] if s.kind in ("exchange", "host")]


def package_operations() -> list[str]:
    """Operations that have steps, in order."""
    return list(dict.fromkeys(step.operation for step in known_program().steps if step.operation))


def test_instructions_one_by_one() -> None:
    with debugger() as found:
        found.break_at("kernel", "gemm_f16", 2)
        stopped = found.resume()
        assert stopped is not None and stopped.tile == 2 and stopped.reason == "kernel gemm_f16 on tile 2"
        called = {n: s.name for n, s in enumerate(package().profile.steps)}
        assert stopped.step in {
            called[n] for n, s in enumerate(known_program().steps) if s.kernel == "gemm_f16"
        }
        before = found.tile().counters.sum()
        listing = found.disassemble(count=3)
        done = found.step(count=3)
        assert listing[0].startswith("> ") and len(done) == 3
        assert found.tile().counters.sum() == before + 3
        # What follows may be a branch; each instruction issued is the one that stands at its address.
        assert done[0].text in listing[0]
        for step in done:
            assert step.text in found.disassemble(address=step.address, count=1)[0]
        assert [step.cycle for step in done] == sorted(step.cycle for step in done)
        registers = found.registers()
        named = dict(pair for step in done for pair in step.writes if pair[0] in registers)
        assert all(registers[name] == value for name, value in named.items())
        # Until the workers run, and past their end: then only the barrier is left.
        found.step(count=200_000)
        assert len(found.step(count=1)) == 0
        found.breakpoints.clear()
        assert found.resume() is None


def test_instructions_stand_beside_their_source() -> None:
    with debugger() as found:
        found.break_at("kernel", root_kernel())
        found.resume()
        name = root_kernel()
        lines = found.disassemble(address=place(package(), name), count=40)
        assert all(f"; {name}.S:" in line for line in lines[:6])
        assert f"{name}: " in lines[0]
        for line in lines:
            code, separator, source = line.partition(f"; {name}.S:")
            assert not separator or code.split(">  ")[-1].split()[0] in source
        own = found.disassemble(address=place(package(), "tile_program"), count=2)
        assert not any(".S:" in line for line in own)


def test_a_fault_of_a_kernel_names_its_source() -> None:
    found, name = package(), root_kernel()
    address = executed(name)[5]
    segment, _ = next(code_words(found, address, address + 4, found.tiles[0].image))
    broken = with_words(found, segment, {address: build.trap(0)})
    with (
        open_device("sim") as device,
        Session(device, broken) as session,
        pytest.raises(SimulationError) as error,
    ):
        session.run({"x": images()})
    code = found.segment_bytes(segment)[address - segment.address :][:8]
    instruction = decode(int.from_bytes(code[:4], "little"), int.from_bytes(code[4:], "little"))
    symbol, _, place_ = str(error.value.symbol).rpartition(", ")
    file, _, line = place_.partition(":")
    assert error.value.address == address and symbol.startswith(f"{name}+")
    assert instruction.form.mnemonic in kernel_text(file)[int(line) - 1]


def test_a_worker_is_stopped_at_an_address_of_its_code() -> None:
    with debugger() as found:
        found.break_at("kernel", root_kernel())
        stopped = found.resume()
        assert stopped is not None and stopped.context == "supervisor"
        launched: set[int] = set()
        while not launched:
            launched = {step.address for step in found.step(count=50) if step.context}
        found.breakpoints.clear()
        address = sorted(launched)[0]
        found.break_at("address", hex(address))
        again = found.resume()
        assert again is not None and again.context.startswith("worker") and again.address == address
        context = int(again.context.split()[1]) + 1
        assert len(found.registers(context=context)) == 20
        (step, *_) = found.step()
        assert step.cycle >= 0
        found.breakpoints.clear()
        assert found.resume() is None and found.outputs is not None
    with open_device("sim") as device, Session(device, package()) as session:
        assert np.array_equal(found.outputs["logits"], session.run({"x": images()})["logits"])


def test_tensors_and_who_wrote_them() -> None:
    first, second = kept(0), kept(1)
    with debugger() as found:
        found.break_at("operator", second)
        found.resume()
        result = found.tensor(first)
        assert result.state == "" and result.difference is None and result.array.shape == (48, 128)
        assert result.expected is not None and 0 < result.largest < 0.01
        x = found.tensor("x")
        assert x.state or np.abs(x.array - images()).max() <= 2**-11
        assert found.tensor(second).state.startswith("is not whole before")
        value = next(v for v in known_program().values if v.binding.name == first)
        tile, address = int(value.binding.slices["tile"][0]), int(value.binding.slices["address"][0])
        writer = found.writer(address, tile)
        assert writer.who.startswith("worker") and writer.symbol.startswith(f"{root_kernel()}+")
        word = decode(int.from_bytes(found.memory(writer.address, 4, tile), "little"))
        assert word.form.mnemonic.startswith(("st", "ldst", "ld2xst"))
        with pytest.raises(UsageError, match="does not say where 'nothing' lies"):
            found.tensor("nothing")
        found.breakpoints.clear()
        found.break_at("phase", "output")
        found.resume()
        assert found.tensor(first).state, "its memory holds something else by then, or may"
    with Debugger(wrong_kernel(root_kernel()), {"x": images()}) as found:
        found.break_at("operator", second)
        found.resume()
        wrong = found.tensor(first)
        assert wrong.state == "" and wrong.difference is not None and wrong.largest > 0.01


def test_what_arrives_by_exchange_is_from_outside() -> None:
    debug = package().debug
    assert debug is not None and debug.program is not None
    copied = next(v for v in debug.program.values if v.copy)
    with debugger() as found:
        following = package().profile.steps[copied.step + 1].name
        found.break_at("phase", following)
        found.resume()
        arrived = {
            found.writer(int(row["address"]), int(row["tile"])).who for row in copied.binding.slices[:8]
        }
        assert "from outside" in arrived
        row = copied.binding.slices[0]
        assert found.writer(int(row["address"]), int(row["tile"])).buffer


def test_what_does_not_exist_is_named() -> None:
    content = package()
    row = next(region for region in content.regions if region.name.endswith(".row"))
    for kind, name, tile, message in (
        ("operator", "gelu_9", None, "no step belongs to operator 'gelu_9'.*there are"),
        ("phase", "mul", None, "there is no step 'mul'"),
        ("kernel", "gemm", None, "there is no kernel 'gemm'.*gemm_f16"),
        ("address", "0x5c011", None, "no address of an instruction"),
        ("address", "0x90000", None, "no address of an instruction"),
        ("address", hex(row.address), row.physical_tile, "exchange row"),
        ("address", "nowhere+4", None, "there is no symbol 'nowhere'"),
        ("address", "+", None, "is no address"),
        ("kernel", "gemm_f16", 1472, "there is no tile 1472"),
        ("thing", "x", None, "there is no breakpoint 'thing'"),
    ):
        with pytest.raises(UsageError, match=message):
            breakpoint_at(content, kind, name, tile)
    assert place(content, "gemm_f16+0x10") == place(content, "gemm_f16") + 16
    with debugger() as found, pytest.raises(UsageError, match="not stopped anywhere"):
        found.registers()


def test_a_fault_of_the_program_ends_the_run_with_its_own_error() -> None:
    content = package()
    # Of the kernel itself, which lies below the tile's own program.
    kernel = range(place(content, root_kernel()), place(content, "tile_program"))
    begin = next(address for address in executed(root_kernel()) if address in kernel)
    segment, address = next(code_words(content, begin, begin + 4))
    with Debugger(with_words(content, segment, {address: 0xFFFFFFFF}), {"x": images()}) as found:
        found.break_at("operator", kept(0))
        assert found.resume() is not None
        with pytest.raises(SimulationError, match=root_kernel()):
            found.resume()
        assert found.over


def test_the_language() -> None:
    lines: list[str] = []
    with debugger() as found:
        commands = Commands(found, lines.append)
        for line in ("", "# remark", "help", "values", f"break operator {kept(1)}", "breaks", "where", "run"):
            commands.run(line)
        for line in ("tile", "registers", "registers 1", "disassemble gemm_f16 2", "memory 0x80000 5"):
            commands.run(line)
        for line in (
            f"tensor {kept(0)} 3 5",
            "writer 0x80000",
            "step 2",
            "step phase",
            "delete 0",
            "continue",
        ):
            commands.run(line)
        commands.run("quit")
        assert commands.ended
    text = "\n".join(lines)
    assert HELP in text and f"0: operator {kept(1)}" in text and "the run has not begun" in text
    assert f"stopped at operator {kept(1)}" in text and "as expected" in text and "the run is over" in text
    assert "<gemm_f16>" in text and "0x80000  " in text


@pytest.mark.parametrize(
    "line",
    ["fly", "break", "break thing x", "step 0", "step 99999999999", "delete 7", "tensor x 99999", "memory",
     "memory 0x100", "writer", "registers 9", "disassemble zero", "tile 2000", "tensor", "x'", "memory 0 0"],
)  # fmt: skip
def test_wrong_commands_are_one_line(line: str) -> None:
    with debugger() as found:
        commands = Commands(found, lambda _: None)
        commands.run("break phase 3")
        commands.run("run")
        with pytest.raises(UsageError) as caught:
            commands.run(line)
        assert "\n" not in str(caught.value)


def test_scripts_run_from_the_command_line(tmp_path: Path) -> None:
    save_package(package(), tmp_path / "p.ipuexe")
    np.save(tmp_path / "x.npy", images())
    (tmp_path / "good.txt").write_text(f"break operator {kept(1)}\nrun\ntensor {kept(0)}\ncontinue\n")
    (tmp_path / "bad.txt").write_text(f"break operator {kept(1)}\nrun\ntensor nothing\nrun\n")
    (tmp_path / "odd.txt").write_bytes(b"\xff\xfe\x00")
    options = ["debug", str(tmp_path / "p.ipuexe"), "--input", f"x={tmp_path / 'x.npy'}", "--script"]
    runner = CliRunner()
    good = runner.invoke(app, [*options, str(tmp_path / "good.txt")])
    assert good.exit_code == 0, good.output
    assert f"stopped at operator {kept(1)}" in good.output and "the run is over" in good.output
    bad = runner.invoke(app, [*options, str(tmp_path / "bad.txt")])
    assert bad.exit_code == 2 and "bad.txt:3" in bad.output and "Traceback" not in bad.output
    odd = runner.invoke(app, [*options, str(tmp_path / "odd.txt")])
    assert odd.exit_code == 2 and "UTF-8" in odd.output
    typed = runner.invoke(
        app, options[:-1], input=f"tensor x\nbreak operator {kept(1)}\nrun\nwhere\n\nquit\n"
    )
    assert typed.exit_code == 0 and typed.output.count(f"stopped at operator {kept(1)}") == 3
