"""Host traffic: slots, batches and packets carry every byte of every slice exactly once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.emit.host_code import Tables, _cuts, phase
from tilewright.ipu21.emit.host_plan import COMMAND_PAGE_BYTES, Piece, Slot, plan_batches
from tilewright.ipu21.emit.host_sequence import HostSequence
from tilewright.ipu21.emit.memory_map import STAGING, TABLES
from tilewright.ipu21.isa.decode import decode
from tilewright.ipu21.machine.host import decode_header
from tilewright.package.records import SLICE, Binding

pytestmark = pytest.mark.unit


def binding(name: str, slices: list[tuple[int, int, int, int]]) -> Binding:
    """(tile, address, file offset, bytes) slices."""
    records = np.zeros(len(slices), dtype=SLICE)
    for index, (tile, address, offset, size) in enumerate(slices):
        records[index]["tile"], records[index]["address"] = tile, address
        records[index]["file_offset"], records[index]["size"] = offset, size
    return Binding(name, "float32", "float16", (1,), "a16", (1, 1), records)


@given(
    data=st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(1, 400)), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_every_byte_travels_once_and_in_its_slot(data: list[list[tuple[int, int]]]) -> None:
    bindings, expected, base = [], {}, 0
    address = 0x80000
    for index, group in enumerate(data):
        slices, offset = [], 0
        for tile, units in group:
            size = 32 * units
            slices.append((tile, address, offset, size))
            for byte in range(0, size, 4):
                expected[(tile, address + byte)] = base + offset + byte
            offset += size
            address += size
        bindings.append(binding(f"b{index}", slices))
        base += offset
    batches = plan_batches(bindings)
    got: dict[tuple[int, int], int] = {}
    start = 0
    for slots, end in zip(batches.slots, batches.ends, strict=True):
        page = {}
        for record in batches.host_slices[start:end]:
            for byte in range(0, int(record["size"]), 4):
                where = int(record["page_offset"]) + byte
                assert where not in page
                page[where] = int(record["file_offset"]) + byte
        start = end
        for tile, slot in slots.items():
            assert slot.size <= 4096
            for piece in slot.pieces:
                for byte in range(0, piece.size, 4):
                    key = (tile, piece.address + byte)
                    assert key not in got
                    got[key] = page[slot.device_offset - COMMAND_PAGE_BYTES + piece.slot_offset + byte]
    assert got == expected


@given(
    start=st.integers(0, 200).map(lambda n: 32 * n),
    units=st.integers(1, 128),
    limit=st.sampled_from([256, 1024]),
)
def test_packet_cuts_follow_the_packet_rules(start: int, units: int, limit: int) -> None:
    size = 32 * units
    position = 0
    for offset, length, long in _cuts(start, size, limit):
        assert offset == position
        position += length
        if long:
            assert (start + offset) % 64 == 0 and length % 64 == 0 and 64 <= length <= limit
        else:
            assert length % 4 == 0 and 4 <= length <= 60
    assert position == size


def test_worked_example_target_and_owner_words() -> None:
    # The published two-tile program: tile 53 gives 12 bytes to the host; its words, from the listing.
    tables = Tables(53)
    slot = Slot(0x2000, [Piece(0x54000, 0, 12)])
    words = phase(53, slot, True, [53], tables)
    assert words[:5] == [0x19800635, 0x438080A0, 0x4180000F, 0x19800001, 0x438080A6]
    assert tables.words == [1, 0, 0x801A8000, 0x80008003, 0xCC1A820B, 0x80000000]
    assert words[8] == 0x40A0000E
    assert words[10:] == [0x41800000, 0x41800007, 0x19800640, 0x438080A0]


def test_worked_example_read() -> None:
    tables = Tables(0)
    words = phase(0, Slot(0x1000, [Piece(0x90000, 0, 12)]), False, [0], tables)
    assert words[:5] == [0x19800600, 0x438080A0, 0x4180000F, 0x19800003, 0x438080A6]
    assert tables.words == [1, 0, 0xCC00020C, 0x00004003]
    assert decode_header(*tables.words[2:4]).tile_address == STAGING
    sends = [decode(word) for word in words if word >> 27 == 0b01111]
    assert [send.operands for send in sends] == [(1, TABLES // 4, 3), (1, TABLES // 4 + 2, 3)]


def test_separated_owner_sends_its_request_and_waits() -> None:
    # The published separated form: physical 4 owns 260.
    tables = Tables(4)
    words = phase(4, None, False, [260], tables)
    assert tables.words == [0x100, 0]
    assert words[:3] == [0x19800604, 0x438080A0, 0x4180000F]
    assert words[4:] == [0x41800007, 0x19800640, 0x438080A0]
    target = phase(260, Slot(0x1000, [Piece(0x90000, 0, 12)]), False, [], Tables(260))
    assert target[:3] == [0x19800604, 0x438080A0, 0x41800007]


def test_full_slots_share_their_packet_headers() -> None:
    tables = Tables(0)
    size = 0
    for _ in range(3):
        phase(0, Slot(0x1000, [Piece(0x90000, 0, 4096)]), False, [0], tables)
        size = size or len(tables.words)
    assert len(tables.words) == size == 2 + 2 * 4
    phase(0, Slot(0x1000, [Piece(0x90000, 0, 2048)]), False, [0], tables)
    assert len(tables.words) == size + 2 * 2  # the last read is marked, so two headers are new


NOT_A_BARRIER = 0x43A00000
"""`br $m10`, standing for any code."""


def barriers_joined(words: list[int], address: int) -> list[int]:
    """What the code does with barriers: `sans` operands in order, each waited for. Anything else is 0."""
    joined, pc, counter = [], 0, 0
    while pc < len(words):
        instruction = decode(words[pc])
        name, operands = instruction.form.mnemonic, instruction.operands
        pc += 1
        if name == "setzi":
            counter = operands[1]
        elif name == "sans":
            joined.append(operands[0] + 1)
        elif name == "brnzdec":
            counter -= 1
            if counter >= 0:
                pc = (operands[1] - address) // 4
        elif name == "sync":
            assert operands == (1,)
        else:
            joined.append(0)
    return joined


@given(
    phases=st.lists(st.sampled_from([0, 1, 2]), max_size=40), address=st.integers(0, 99).map(lambda n: 4 * n)
)
def test_absences_are_counted_whatever_the_loops(phases: list[int], address: int) -> None:
    """0 stands for a phase with code of its own, others for the barriers that are sat out."""
    sequence = HostSequence()
    for barriers in phases:
        if barriers:
            sequence.absent(barriers)
        else:
            sequence.add([NOT_A_BARRIER])
    words = sequence.words(0x5C000 + address)
    assert barriers_joined(words, 0x5C000 + address) == phases
    assert len(words) == len(sequence)


def test_many_absences_take_four_words() -> None:
    sequence = HostSequence()
    for _ in range(1000):
        sequence.absent(2)
    assert len(sequence) == 4


def test_what_goes_on_behind_another_slice_is_one_piece_of_a_slot() -> None:
    """Each piece is copied by a call of its own; one that begins elsewhere, or in another slot, stays one."""
    slices = [(3, 0x80000, 0, 64), (3, 0x80040, 64, 96), (3, 0x90000, 160, 32), (5, 0x80040, 192, 32)]
    batches = plan_batches([binding("b", slices), binding("c", [(3, 0x90020, 0, 4096)])])
    first, second = batches.slots
    assert first[3].pieces == [Piece(0x80000, 0, 160), Piece(0x90000, 160, 32 + 4096 - 192)]
    assert first[5].pieces == [Piece(0x80040, 0, 32)]
    assert second[3].pieces == [Piece(0x90000 + 32 + 4096 - 192, 0, 192)]
