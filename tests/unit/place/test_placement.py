"""What a plan asks of memory reaches the placer: tails, regions, lifetimes, elements of calls and phases."""

from __future__ import annotations

import pytest

from tilewright.errors import PlacementError
from tilewright.ipu21.lower.tile_work import lower_plan
from tilewright.ipu21.machine.memory import (
    ELEMENT_BYTES,
    LOADABLE_END,
    REGION1_BASE,
    effective_elements,
)
from tilewright.ipu21.place import placement
from tilewright.ipu21.place.placement import live_at_steps, place_work
from tilewright.ipu21.place.placer import place
from tilewright.ipu21.place.request import NoRoomError, Placed, Request
from tilewright.ipu21.plan.layout import MICRO, Axis, Layout, spread
from tilewright.ipu21.plan.steps import Buffer, Compute, Exchange, MemoryClass, Plan, Retile

pytestmark = pytest.mark.unit

START = 0x60000
REGION1_BYTES = (LOADABLE_END - REGION1_BASE) // 32 * 32


def rows(size: int, tiles: int = 1) -> Layout:
    """A matrix of 16 columns of which every tile holds so many bytes."""
    return spread(size // 32 * tiles, MICRO, tiles)


def everywhere(size: int, tiles: int) -> Layout:
    """The same bytes on every tile."""
    return Layout("a16", Axis(size // 32, 1), Axis(MICRO, MICRO), tiles)


def plan_of(*steps: Compute | Exchange, tiles: int = 1, **layouts: Layout) -> Plan:
    plan = Plan(tiles, steps=list(steps))
    for name, layout in layouts.items():
        plan.buffers[name] = Buffer(name, layout, "value", name)
    return plan


def scale(target: str, source: str, **rules: tuple[tuple[str, str], ...]) -> Compute:
    return Compute(target, "scale_f16", (target, source), (target,), 1.0, {"factor": 1.0}, **rules)


def placed(plan: Plan, start: int = START) -> dict[str, Placed]:
    (only,) = place_work(lower_plan(plan), start).classes
    return only


def asked(plan: Plan, name: str, memory: MemoryClass = "any", tail: int = 0) -> None:
    """Give a buffer of a plan what a kernel's contract would."""
    held = plan.buffers[name]
    plan.buffers[name] = Buffer(name, held.layout, held.role, held.owner, memory, tail=tail)


def share(found: dict[str, Placed], one: str, other: str) -> bool:
    """True if two buffers share a memory element."""
    a, b = (effective_elements(found[name].address, found[name].end) for name in (one, other))
    return bool(set(a) & set(b))


def test_nothing_lies_in_an_access_tail_and_no_tail_leaves_memory() -> None:
    plan = plan_of(scale("b", "a"), a=rows(4096), b=rows(1024))
    asked(plan, "a", tail=512)
    found = placed(plan)
    begin = found["a"].address
    assert not begin <= found["b"].address < begin + 4096 + 512
    full = plan_of(scale("a", "a"), a=rows(REGION1_BYTES))
    assert placed(full)["a"].address == REGION1_BASE
    asked(full, "a", tail=32)
    with pytest.raises(PlacementError):
        placed(full)


@pytest.mark.parametrize(
    ("memory", "address"), [("any", START), ("preferred", REGION1_BASE), ("interleaved", REGION1_BASE)]
)
def test_memory_class_decides_on_the_region(memory: MemoryClass, address: int) -> None:
    plan = plan_of(scale("a", "a"), a=rows(4096))
    asked(plan, "a", memory)
    assert placed(plan)["a"].address == address


def test_what_must_lie_in_interleaved_memory_finds_no_room_elsewhere() -> None:
    plan = plan_of(scale("b", "a"), a=rows(REGION1_BYTES), b=rows(4096))
    asked(plan, "a", "interleaved")
    asked(plan, "b", "preferred")
    assert placed(plan)["b"].address == START
    asked(plan, "b", "interleaved")
    with pytest.raises(PlacementError, match=r"no room in interleaved memory .* 4,080 bytes over"):
        placed(plan)


def test_memory_is_used_again_when_its_buffer_is_dead_and_not_before() -> None:
    large = rows(300_000)
    plan = plan_of(
        scale("b", "a"), scale("c", "b"), scale("d", "c"), a=large, b=rows(64), c=rows(64), d=large
    )
    found = placed(plan)
    assert found["a"].address == found["d"].address == REGION1_BASE
    for other in "ac":
        assert found["b"].end <= found[other].address or found[other].end <= found["b"].address
    for kept in (scale("d", "a"), scale("a", "c")):
        longer = plan_of(*plan.steps[:2], kept, scale("d", "a"), a=large, b=rows(64), c=rows(64), d=large)
        with pytest.raises(PlacementError, match="600,0"):
            placed(longer)


def test_operands_that_a_call_must_find_apart_are_apart() -> None:
    sizes = {"a": rows(4096), "b": rows(4096)}
    assert share(placed(plan_of(scale("b", "a"), **sizes)), "a", "b")
    for rule in ("apart", "prefer_apart"):
        assert not share(placed(plan_of(scale("b", "a", **{rule: (("b", "a"),)}), **sizes)), "a", "b")
    # One element is left: what must not share it finds no room, what only should not does.
    start = REGION1_BASE - ELEMENT_BYTES
    filler = {"filler": rows(REGION1_BYTES)}
    steps = scale("filler", "filler")
    for rule, is_rule in (("prefer_apart", False), ("apart", True)):
        tight = plan_of(scale("b", "a", **{rule: (("b", "a"),)}), steps, scale("b", "a"), **sizes, **filler)
        tight.steps.insert(0, steps)
        if is_rule:
            with pytest.raises(PlacementError, match="no room"):
                placed(tight, start)
        else:
            assert share(placed(tight, start), "a", "b")


def phase(*moves: str) -> Exchange:
    return Exchange("phase", tuple(Retile(move[0], move[1]) for move in moves), 1.0)


def test_a_phase_reads_and_writes_different_elements_where_there_is_room() -> None:
    sent, received = rows(1024, 2), everywhere(2048, 2)
    plan = plan_of(phase("ab", "cd"), tiles=2, a=sent, b=received, c=sent, d=received)
    for found in place_work(lower_plan(plan), START).classes:
        for source in "ac":
            for destination in "bd":
                assert not share(found, source, destination)


def test_rules_of_a_phase() -> None:
    """As long as there is room nothing is received where anything is sent from; then only where it must."""
    sent, received = rows(1024, 2), everywhere(2048, 2)
    work = lower_plan(plan_of(phase("ab", "cd"), tiles=2, a=sent, b=received, c=sent, d=received))
    assert placement._separations(work, True) == ({"a": {"b", "d"}, "c": {"b", "d"}}, {})
    assert placement._separations(work, False) == ({}, {"a": {"b"}, "c": {"d"}})


def test_copies_alone_have_no_rule() -> None:
    whole = rows(1024)
    work = lower_plan(plan_of(phase("ab"), a=whole, b=whole))
    assert placement._separations(work, True) == placement._separations(work, False) == ({}, {})


def test_a_class_is_told_how_the_one_before_was_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    def spy(requests: list[Request], start: int, *, like: dict[str, Placed] | None) -> dict[str, Placed]:
        told.append(like)
        return place(requests, start, like=like)

    monkeypatch.setattr(placement, "place", spy)
    # Three rows of elements for two tiles: one holds more than the other.
    plan = plan_of(scale("a", "a"), tiles=2, a=spread(3, MICRO, 2))
    first, second = place_work(lower_plan(plan), START).classes
    assert told == [None, first] and first != second


@pytest.mark.parametrize("tiles", [2, 3])
def test_only_what_hears_itself_must_lie_apart_from_what_it_sends(tiles: int) -> None:
    """Of three tiles that send to all, each hears itself; of two each copies its own part."""
    sent, received = rows(1024, tiles), everywhere(1024 * tiles, tiles)
    keep = scale("filler", "filler")
    plan = plan_of(
        keep, phase("ab"), keep, tiles=tiles, a=sent, b=received, filler=everywhere(REGION1_BYTES, tiles)
    )
    work = lower_plan(plan)
    start = REGION1_BASE - ELEMENT_BYTES
    if tiles == 3:
        with pytest.raises(PlacementError, match="no room"):
            place_work(work, start)
    else:
        assert all(share(found, "a", "b") for found in place_work(work, start).classes)
    for found in place_work(work, START).classes:
        assert not share(found, "a", "b")


def test_the_error_sums_up_what_it_does_not_name() -> None:
    names = "abcdefg"
    sizes = {name: rows(100_000 - 3200 * at) for at, name in enumerate(names)}
    steps = [scale(one, other) for one, other in zip(names[1:], names, strict=False)]
    plan = plan_of(*steps, *reversed(steps), **sizes)
    total = sum(int(layout.bytes[0]) for layout in sizes.values())
    with pytest.raises(PlacementError) as caught:
        placed(plan)
    text = str(caught.value)
    rest = sum(int(sizes[name].bytes[0]) for name in names[5:])
    assert f"{total:,} bytes live at" in text and f"; 2 more, {rest:,} bytes" in text
    assert f"a {int(sizes['a'].bytes[0]):,} bytes for a, b to b" in text
    assert "no room in memory" in text and "no arrangement" not in text


@pytest.mark.parametrize(
    ("must", "size", "kind"),
    [
        # What finds no place must lie in region 1; what must lie there is too large for it; neither.
        ((True, True), 64, "interleaved memory"),
        ((False, True), REGION1_BYTES + 64, "interleaved memory"),
        ((False, True), 64, "memory"),
    ],
)
def test_the_error_says_which_memory(must: tuple[bool, bool], size: int, kind: str) -> None:
    work = lower_plan(plan_of(scale("b", "a"), a=rows(64), b=rows(64)))
    lost, other = Request("a", 64, must[0], -1, 0), Request("b", size, must[1], 0, 1)
    error = NoRoomError(lost, [lost, other], START, 32, proven=False)
    text = str(placement._explain(error, work, work.classes[0]))
    assert f"no room in {kind} for a (64 bytes)" in text
    assert ", and no arrangement found that fits" in text
    lifetimes = [placement._lifetime(work.plan, *ends) for ends in ((-1, 0), (0, 1))]
    assert lifetimes == ["input to b", "b to output"]


def test_what_lives_at_each_step() -> None:
    plan = plan_of(scale("b", "a"), scale("c", "b"), scale("d", "c"), **dict.fromkeys("abcd", rows(64)))
    assert live_at_steps(plan) == [["a", "b"], ["b", "c"], ["c", "d"]]
