"""What a kernel call asks of the buffers it is given, from a contract that is made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from tilewright.ipu21.kernels.kernel import Contract, Operand
from tilewright.ipu21.plan import builder as module
from tilewright.ipu21.plan import cost
from tilewright.ipu21.plan.builder import Builder
from tilewright.ipu21.plan.layout import Axis, Layout, Level, spread
from tilewright.ipu21.plan.movement import FRAGMENT, Traffic, load_of, retile
from tilewright.ipu21.plan.price import FREE
from tilewright.ipu21.plan.steps import Compute, Fetch, Retile

pytestmark = pytest.mark.unit

NAMES = ("out", "must", "should", "also")


@pytest.fixture
def building(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """A builder with four buffers, and a kernel that wants each of its operands in another way."""
    contract = Contract(
        (
            Operand("out", "a16", "out", access_tail=8),
            Operand("must", "a16", "in", interleaved=True),
            Operand("should", "a16", "in", prefers_interleaved=True, access_tail=32),
            Operand("also", "a16", "out"),
        ),
        (),
        apart=(("out", "must"), ("must", "should")),
        apart_in_standard=(("should", "also"),),
        faster_apart=(("out", "should"), ("must", "also")),
    )
    monkeypatch.setitem(module.KERNELS, "made_up", SimpleNamespace(contract=contract))
    builder = Builder(2, FREE)
    for name in NAMES:
        builder.add(name, spread(4, 16, 2), "scratch", name)
    return builder


def called(builder: Builder, *operands: str | None) -> Compute:
    builder.call("call", "made_up", operands, 5.0)
    step = builder.plan.steps[-1]
    assert isinstance(step, Compute)
    return step


def test_buffers_lie_where_a_kernel_wants_its_operands(building: Builder) -> None:
    called(building, *NAMES)
    assert {name: building.plan.buffers[name].memory for name in NAMES} == {
        "out": "any",
        "must": "interleaved",
        "should": "preferred",
        "also": "any",
    }
    assert [building.plan.buffers[name].tail for name in NAMES] == [8, 0, 32, 0]


def test_the_strongest_wish_and_the_longest_tail_of_all_calls_count(building: Builder) -> None:
    called(building, *NAMES)
    # The same buffers, each as another operand.
    called(building, "must", "should", "out", "also")
    assert {name: building.plan.buffers[name].memory for name in NAMES} == {
        "out": "preferred",
        "must": "interleaved",
        "should": "interleaved",
        "also": "any",
    }
    assert [building.plan.buffers[name].tail for name in NAMES] == [32, 8, 32, 0]


def test_what_is_written_is_every_output_that_is_there_once(building: Builder) -> None:
    assert called(building, *NAMES).written == ("out", "also")
    assert called(building, "out", "must", "should", None).written == ("out",)
    assert called(building, "out", "must", "should", "out").written == ("out",)


def test_pairs_keep_apart_that_are_there_and_two_buffers(building: Builder) -> None:
    step = called(building, *NAMES)
    assert step.apart == (("out", "must"), ("must", "should"), ("should", "also"))
    assert step.prefer_apart == (("out", "should"), ("must", "also"))
    assert called(building, "out", "must", None, "also").apart == (("out", "must"),)
    assert called(building, "out", "must", None, "also").prefer_apart == (("must", "also"),)
    assert called(building, "out", None, "should", "also").prefer_apart == (("out", "should"),)
    assert called(building, "out", "must", "should", None).prefer_apart == (("out", "should"),)
    assert called(building, "out", None, "should", "also").apart == (("should", "also"),)
    assert called(building, "must", "must", "should", "should").apart == (("must", "should"),)


def test_names_are_made_unique_and_a_fork_goes_on_with_them(building: Builder) -> None:
    assert building.add("out", spread(1, 16, 1), "scratch", "other") == "out@2"
    fork = building.fork()
    assert fork.add("out", spread(1, 16, 1), "scratch", "other") == "out@3"
    assert "out@3" not in building.plan.buffers


def padded(rows: int, order: str = "a16") -> Layout:
    """Rows in blocks of 16 on two tiles, 32 columns."""
    return Layout(order, Axis(rows, 16, (Level(2, 1),)), Axis(32, 16), 2)


@pytest.mark.parametrize(
    ("layout", "panels"),
    [(padded(40), [0, 1]), (padded(32), []), (padded(40, "a16t"), []), (spread(3, 32, 2), [])],
)
def test_padding_of_rows_is_cleared_panel_by_panel(
    building: Builder, layout: Layout, panels: list[int]
) -> None:
    name = building.add("padded", layout, "scratch", "padded")
    building.clear_padding(name)
    steps: list[Any] = building.plan.steps
    assert [(step.kernel, step.operands, step.parameters["panel"]) for step in steps] == [
        ("fill_u64", (name,), panel) for panel in panels
    ]


def test_what_lies_as_it_is_wanted_is_not_moved(building: Builder) -> None:
    held = building.held("out")
    assert (held.column, held.columns) == (0, 16)
    assert building.bring(held, building.layout("out"), "moved", "owner") == ("out", [])
    building.exchange("receive", [])
    assert not building.plan.steps
    buffer, moves = building.bring(held, spread(4, 16, 1), "moved", "owner")
    assert buffer == "moved" and moves == [Retile("out", "moved", 0)]
    part = building.held("out", column=16, columns=8)
    assert (part.column, part.columns) == (16, 8)
    assert building.bring(part, building.layout("out"), "moved", "owner")[1] == [Retile("out", "moved@2", 16)]


def test_a_move_in_two_steps_is_the_whole_move() -> None:
    building = Builder(3, FREE)
    building.add("parts", spread(3, 16, 3), "scratch", "parts")
    everywhere = Layout("a16", Axis(3), Axis(16, 16), 3)
    building.add("everywhere", everywhere, "scratch", "everywhere")
    parts: tuple[Literal["all", "sent", "kept"], ...] = ("all", "sent", "kept")
    whole, sent, kept = (
        module.traffic_of(building.plan, Retile("parts", "everywhere", part=part)) for part in parts
    )
    # Tile 2 has no partner: it hears itself, or else copies.
    assert (len(whole.tiles), len(whole.copies)) == (9, 0)
    assert (len(sent.tiles), len(sent.copies)) == (8, 0)
    assert (len(kept.fragments), len(kept.tiles), kept.copies["tile"].tolist()) == (0, 0, [2])
    building.exchange("sent", [Retile("parts", "everywhere", part="sent")])
    building.exchange("kept", [Retile("parts", "everywhere", part="kept")])
    building.exchange("hidden", [Retile("parts", "everywhere", part="kept")], 7.0)
    copies = cost.copies(load_of([kept], 3))
    assert copies > 0
    assert [step.cycles for step in building.plan.steps] == [cost.move(load_of([sent], 3)), copies, 7.0]


def test_traffic_of_single_words_is_as_listed(building: Builder) -> None:
    traffic = Traffic(*(retile(spread(4, 16, 2), spread(4, 16, 1)).__dict__.values()))
    assert len(traffic.fragments) and traffic.fragments.dtype == FRAGMENT
    assert module.traffic_of(building.plan, Fetch("out", "must", traffic)) is traffic
    building.add("whole", spread(4, 16, 1), "scratch", "whole")
    found = module.traffic_of(building.plan, Retile("out", "whole"))
    assert found.fragments.tolist() == traffic.fragments.tolist()
