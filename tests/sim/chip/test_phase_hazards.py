"""One fault per rule of an exchange phase, each with the smallest phase that breaks it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chip_rows import NEUTRAL, items, route

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.memory import effective_element
from tilewright.ipu21.simulator.fabric import resolve
from tilewright.ipu21.simulator.hazards import PhaseChecks, check_phase, elements
from tilewright.ipu21.simulator.traffic import Party, collect

pytestmark = pytest.mark.sim

RELEASE = 10_000
COUNT, SEND_EVENT = 8, 200


def phase(
    *, source: int = 0, destination: int = 53, read: int = 0x60000, write: int = 0x64000, count: int = COUNT
) -> tuple[Party, Party]:
    """One unicast; each row lies at 0x5c000 and lasts as long as it must."""
    time, way = route(source, destination)
    x = RELEASE + SEND_EVENT + time + 1
    p = x + 52 + 2 * (destination >> 6)
    log = items(
        (1, x, 0, source, 0, 0x5C000), (1, x + count, 0, NEUTRAL, 0, 0x5C004), (2, p, 0, write, 0, 0x5C008)
    )
    code = (0x5C000, 0x5C010)
    sender = Party(
        np.array([source], np.int64),
        items((0, RELEASE + SEND_EVENT, count, read, way, 0x5C000)),
        NEUTRAL,
        close=RELEASE + SEND_EVENT + count,
        code=code,
    )
    receiver = Party(np.array([destination], np.int64), log, NEUTRAL, close=p + count + 5, code=code)
    return sender, receiver


def check(*parties: Party, checks: PhaseChecks | None = None) -> None:
    traffic = collect(parties, RELEASE)
    check_phase(traffic, resolve(traffic, np.zeros(2048, np.int64)).pieces, checks or PhaseChecks())


def fails(match: str, *parties: Party, tile: int, without: str | None = None) -> SimulationError:
    with pytest.raises(SimulationError, match=match) as error:
        check(*parties)
    assert error.value.tile == tile
    assert error.value.category == "program"
    if without is not None:
        check(*parties, checks=replace(PhaseChecks(), **{without: False}))
    return error.value


def test_a_proper_phase_passes() -> None:
    check(*phase())


def test_elements_match_the_memory_map() -> None:
    addresses = np.arange(0x4C000, 0xE8000, 0x1000)
    assert elements(addresses).tolist() == [effective_element(int(a)) for a in addresses]


def test_row_ends_before_the_guard() -> None:
    sender, receiver = phase()
    fails(
        "the row ends at event",
        sender,
        replace(receiver, close=receiver.close - 1),
        tile=53,
        without="windows",
    )


def test_words_for_a_bystander() -> None:
    sender, _ = phase()
    bystander = Party(np.array([53], np.int64), items(), 0, active=False)
    fails("pointer at 0x0", sender, bystander, tile=53)
    traffic = collect([sender, bystander], RELEASE)
    pointers = np.full(2048, 0x64000, np.int64)
    pieces = resolve(traffic, pointers).pieces
    assert pieces["items"].tolist() == [COUNT]
    with pytest.raises(SimulationError, match="sits the phase out") as error:
        check_phase(traffic, pieces, PhaseChecks())
    assert error.value.tile == 53
    check_phase(traffic, pieces, PhaseChecks(unscheduled=False))


@pytest.mark.parametrize("address", [0x4BFFC, 0xE7FE4, 0x60002])
def test_send_outside_memory(address: int) -> None:
    error = fails("a send of 8 items reads at", *phase(read=address), tile=0)
    assert error.address == 0x5C000
    assert error.event == SEND_EVENT


@pytest.mark.parametrize("address", [0, 0xE7FE4, 0x64001])
def test_receive_outside_memory(address: int) -> None:
    fails("8 items from tile 0 arrive with the pointer at", *phase(write=address), tile=53)


def test_row_and_send_in_one_element() -> None:
    fails("reads the memory element from which the row", *phase(read=0x5C100), tile=0, without="conflicts")


def test_row_and_receive_in_one_element() -> None:
    fails("in the memory element from which the row", *phase(write=0x5FFF0), tile=53, without="conflicts")


def test_look_ahead_of_the_row_counts() -> None:
    sender, receiver = phase(read=0x60000)
    end = 0x60000 - 64
    check(replace(sender, code=(end - 16, end)), receiver)
    fails("memory element", replace(sender, code=(end - 12, end + 4)), receiver, tile=0, without="conflicts")


def test_send_and_receive_in_one_element() -> None:
    """Tile 53 sends from the element that it receives into; apart in time it may."""
    sender, receiver = phase()
    last = int(receiver.log["clock"][2]) + COUNT - 1

    def sending(at: int, address: int) -> Party:
        log = np.concatenate([items((0, at, 4, address, 3, 0x5C00C)), receiver.log])
        return replace(receiver, log=log)

    error = fails("meet in one memory element", sender, sending(last, 0x64800), tile=53, without="conflicts")
    assert error.address == 0x5C00C
    fails("meet in one memory element", sender, sending(last + 5, 0x64800), tile=53)
    check(sender, sending(last + 6, 0x64800))
    check(sender, sending(last, 0x68000))


def test_send_and_receive_meet_only_where_both_are() -> None:
    """A receive that crosses into the next element blocks each element only while it is there."""
    sender, receiver = phase(write=0x67FF0, count=40)
    first = int(receiver.log["clock"][2])

    def sending(at: int, address: int) -> Party:
        return replace(receiver, log=np.concatenate([items((0, at, 2, address, 3, 0x5C00C)), receiver.log]))

    check(sender, sending(first, 0x68800))
    fails("meet in one memory element", sender, sending(first + 3, 0x68800), tile=53)
    fails("meet in one memory element", sender, sending(first + 8, 0x64800), tile=53)
    check(sender, sending(first + 9, 0x64800))


def test_workers_that_run_while_words_arrive() -> None:
    sender, receiver = phase()
    fails("while 2 workers run", sender, replace(receiver, workers=2), tile=53, without="workers")
    check(replace(sender, workers=2), receiver)


@pytest.mark.parametrize("who", [0, 1])
def test_data_count(who: int) -> None:
    parties = list(phase())
    parties[who] = replace(parties[who], data_count=0)
    fails("INCOMING_DCOUNT 0", *parties, tile=[0, 53][who], without="data_count")


def test_a_tile_without_traffic_needs_no_data_count() -> None:
    quiet = Party(np.array([7], np.int64), items(), NEUTRAL, data_count=9)
    check(*phase(), quiet)


def test_sends_that_overlap() -> None:
    sender, receiver = phase()
    log = np.concatenate([sender.log, sender.log])
    log["clock"][1] += COUNT - 1
    fails("two sends of one tile overlap", replace(sender, log=log), receiver, tile=0)
    log["clock"][1] += 1
    check(replace(sender, log=log), receiver)


def test_loopback_needs_another_receiver() -> None:
    """A tile may be one of the receivers of its own multicast, but not the only one."""
    source = 0
    time, _ = route(source, source)
    x = RELEASE + SEND_EVENT + time + 1
    log = items(
        (0, RELEASE + SEND_EVENT, COUNT, 0x60000, 3, 0x5C000),
        (1, x, 0, source, 0, 0x5C004),
        (1, x + COUNT, 0, NEUTRAL, 0, 0x5C004),
        (2, x + 52, 0, 0x64000, 0, 0x5C008),
    )
    sender = Party(np.array([source], np.int64), log, NEUTRAL, close=RELEASE + 1000, code=(0x5C000, 0x5C010))
    _, receiver = phase()
    check(sender, receiver)
    error = fails("heard by nobody but the tile that sends", sender, tile=0, without="loopback")
    assert (error.address, error.event) == (0x5C000, SEND_EVENT)
    late = receiver.log.copy()
    late["clock"][:2] += COUNT
    fails("heard by nobody", sender, replace(receiver, log=late), tile=0)


def test_a_silent_source_is_allowed() -> None:
    _, receiver = phase()
    other, _ = phase(source=64)
    check(other, receiver)


def test_format_changed_under_words() -> None:
    sender, receiver = phase()
    p = int(receiver.log["clock"][2])
    log = np.concatenate([receiver.log, items((3, p + 2, 0, 1, 0, 0x5C00C))])
    fails("which changes under them", sender, replace(receiver, log=log), tile=53)
    fails("it is 2", sender, replace(receiver, format=2), tile=53)


def test_half_of_a_64_bit_send() -> None:
    sender, receiver = phase()
    log = sender.log.copy()
    log["control"] |= 4
    with pytest.raises(SimulationError, match="during a 64-bit send") as error:
        check(replace(sender, log=log), receiver)
    assert error.value.category == "fact unknown"


def test_partner_sends_while_its_lane_is_borrowed() -> None:
    sender, _ = phase()
    log = sender.log.copy()
    log["control"] |= 4
    busy = Party(
        np.array([2], np.int64), items((0, RELEASE + SEND_EVENT + 3, 2, 0x60000, 1, 0x5C000)), NEUTRAL
    )
    fails("borrows the lane of tile 2", replace(sender, log=log), busy, tile=0)


def test_pair_mux_on_the_late_member() -> None:
    """Of tiles 64 and 66, 64 hears tile 0 first; selecting on 66 is nothing anybody has tried."""
    send = items((0, RELEASE + 31, 4, 0x60000, 5, 0x5C000))
    sender = Party(np.array([0], np.int64), send, NEUTRAL)
    select = items((4, RELEASE + 1, 0, 2, 0, 0x5C000))
    late = Party(np.array([66], np.int64), select, NEUTRAL, format=1)
    check(sender, replace(late, format=0))
    with pytest.raises(SimulationError, match="later tile of the pair") as error:
        check(sender, late)
    assert (error.value.category, error.value.tile) == ("fact unknown", 66)


def test_a_pair_mux_that_nobody_set_hears_nothing() -> None:
    """INCOMING_MUXPAIR starts as 0, tile 0; with the format still 32-bit that means nothing."""
    send = items((0, RELEASE + 31, 4, 0x60000, 7, 0x5C000))
    sender = Party(np.array([0], np.int64), send, NEUTRAL, close=RELEASE + 35)
    other = Party(np.arange(1, 1472), items(), NEUTRAL, mux_pair=0, active=False)
    traffic = collect([sender, other], RELEASE)
    assert len(resolve(traffic, np.zeros(2048, np.int64)).pieces) == 0
