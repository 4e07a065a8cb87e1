"""The two-tile program of the reference shelf's worked example, as words, and its package.

Logical tile 0 (physical 0) gets three words from the host and sends them to logical 1286 (physical 53), which
gives them back. Instruction words, packet words, addresses and pages are those of that page's sections 2, 3
and 6. Programs are parameters, so that tests can break them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.topology import TILES, to_physical
from tilewright.package.records import (
    EXECUTE,
    NO_BLOB,
    READ,
    WRITE,
    HostCall,
    HostExchange,
    HostPage,
    Image,
    Package,
    Segment,
    Symbol,
    TileImage,
)

SENDER, RECEIVER = 0, 53
LANDING, TARGET, COMPLETION = 0x50180, 0x54000, 0x58000
INPUT = bytes(range(12))
Program = dict[int, int]


def listing(text: str) -> Program:
    """Address and word from each line "address word ; remark"."""
    program = {}
    for line in text.strip().splitlines():
        address, word = line.split(";")[0].split()
        program[int(address, 16)] = int(word, 16)
    return program


PROLOGUE = listing("""
4c010 19e00000 ; nop
4c014 41800003 ; sync 3, B0
4c018 41800002 ; sync 2
4c01c 19000640 ; neutral mux
4c020 430080a0
4c024 43f080a7 ; OUTGOING_BASE
4c028 19000600 ; host mux
4c02c 430080a0
4c030 41800007 ; sync 7, B1
4c034 19000640
4c038 430080a0
""")

WORKER_BARRIER = listing("""
4c080 1904c090
4c084 1500f000 ; runall
4c088 41800002 ; sync 2
4c08c 43700000 ; br m7
4c090 43f04000 ; exitz
""")

FOLLOWER = listing("""
4c098 40c00001 ; sans 1
4c09c 41800001 ; sync 1
4c0a0 43a00000
""")

TILE_0 = listing("""
4c03c 18a1302a ; call the H2D routine
4c040 19800000
4c044 438080a4 ; INCOMING_BASE
4c048 43f080a7 ; OUTGOING_BASE
4c04c 18713020 ; call the worker barrier
4c050 19800001
4c054 438080a6 ; INCOMING_DCOUNT
4c058 41800003 ; sync 3, B4
4c05c 18a1303a ; call the row
4c060 18a13026 ; call the follower
4c064 19000001
4c068 19158000
4c06c 4f10f000 ; completion word
4c070 44f0f301
4c074 43000000 ; br m0
4c0a8 19800600 ; H2D, owner and target
4c0ac 438080a0
4c0b0 4180000f ; sync 15
4c0b4 19800003
4c0b8 438080a6
4c0bc 782a0003 ; XREQ
4c0c0 782a0013 ; header
4c0c4 41800000 ; sync 0
4c0c8 41800007 ; sync 7
4c0cc 19800640
4c0d0 438080a0
4c0d4 43a00000
4c0e8 40a00086 ; row
4c0ec 784a0301
4c0f0 43a00000
""")

TILE_53 = listing("""
4c03c 18a13026 ; call the follower
4c040 19854000
4c044 438080a4
4c048 43f080a7
4c04c 18713020
4c050 19800001
4c054 438080a6
4c058 41800003 ; sync 3, B4
4c05c 18a1303a
4c060 18a1302a ; call the D2H routine
4c064 19000001
4c068 19158000
4c06c 4f10f000
4c070 44f0f301
4c074 43000000
4c0a8 19800635 ; D2H, owner and target
4c0ac 438080a0
4c0b0 4180000f ; sync 15
4c0b4 19800001
4c0b8 438080a6
4c0bc 782a0003 ; XREQ
4c0c0 782a0013 ; write header
4c0c4 784a8003 ; payload
4c0c8 40a0000e ; pad
4c0cc 782a0023 ; closing header
4c0d0 41800000 ; sync 0
4c0d4 41800007 ; sync 7
4c0d8 19800640
4c0dc 438080a0
4c0e0 43a00000
4c0e8 641c0000 ; row
4c0ec 64008640
4c0f0 61800000
4c0f4 40a00007
4c0f8 43a00000
""")

IDLE = listing("""
4c03c 18a13026 ; call the follower: absent from B2, B3
4c040 40c00000 ; sans 0: absent from B4
4c044 41800001 ; sync 1
4c048 18a13026 ; call the follower: absent from B5, B6
4c04c 19000001
4c050 19158000
4c054 4f10f000
4c058 44f0f301
4c05c 43000000
""")

PACKETS_0 = [0x00000001, 0x00000000, 0xCC00020C, 0x00004003]
PACKETS_53 = [0x00000001, 0x00000000, 0x801A8000, 0x80008003, 0xCC1A820B, 0x80000000]

CLASS_A = {**PROLOGUE, **TILE_0, **WORKER_BARRIER, **FOLLOWER}
CLASS_B = {**PROLOGUE, **TILE_53, **WORKER_BARRIER, **FOLLOWER}
CLASS_C = {**PROLOGUE, **IDLE, **FOLLOWER}

# Section 3.4: physical 4 owns the request of physical 260; only a host phase, nothing inside the chip.
OWNER_4 = {
    **PROLOGUE,
    **listing("""
4c03c 18a1302a
4c040 19000001
4c044 19158000
4c048 4f10f000
4c04c 44f0f301
4c050 43000000
4c0a8 19800604
4c0ac 438080a0
4c0b0 4180000f
4c0b4 782a0003
4c0b8 41800007
4c0bc 19800640
4c0c0 438080a0
4c0c4 43a00000
"""),
}
TARGET_260 = {
    **PROLOGUE,
    **listing("""
4c03c 18a1302a
4c040 19000001
4c044 19158000
4c048 4f10f000
4c04c 44f0f301
4c050 43000000
4c0a8 19800604
4c0ac 438080a0
4c0b0 41800007
4c0b4 19800003
4c0b8 438080a6
4c0bc 782a0013
4c0c0 41800000
4c0c4 41800007
4c0c8 19800640
4c0cc 438080a0
4c0d0 43a00000
"""),
}
IDLE_HOST_ONLY = {
    **PROLOGUE,
    **FOLLOWER,
    **listing("""
4c03c 18a13026
4c040 19000001
4c044 19158000
4c048 4f10f000
4c04c 44f0f301
4c050 43000000
"""),
}


def words_to_bytes(words: list[int]) -> bytes:
    return np.array(words, "<u4").tobytes()


def segments(program: Program, data: Mapping[int, bytes | int]) -> list[tuple[int, bytes, int, int]]:
    """(address, bytes, memory size, flags): code with zeroed gaps, then data or, for a number, zeros."""
    first, end = min(program), max(program) + 4
    code = np.zeros((end - first) // 4, "<u4")
    for address, word in program.items():
        code[(address - first) // 4] = word
    result = [(first, code.tobytes(), end - first, READ | EXECUTE)]
    for address, content in sorted(data.items()):
        if isinstance(content, int):
            result.append((address, b"", content, READ | WRITE))
        else:
            result.append((address, content, len(content), READ | WRITE))
    return result


def build(
    programs: Mapping[int, tuple[Program, Mapping[int, bytes | int]]],
    others: tuple[Program, Mapping[int, bytes | int]] | None,
    *,
    calls: list[HostCall] | None = None,
) -> Package:
    """A package with the given tiles (physical ids) and, if given, all other tiles alike."""
    blobs: list[bytes] = []
    images, tiles = [], []

    def image(program: Program, data: Mapping[int, bytes | int]) -> int:
        parts = []
        for address, content, size, flags in segments(program, data):
            if content and content not in blobs:
                blobs.append(content)
            blob = blobs.index(content) if content else NO_BLOB
            parts.append(Segment(address, size, blob, 0, len(content), flags))
        images.append(Image(0x4C014, 0, COMPLETION, parts))
        return len(images) - 1

    for physical, (program, data) in programs.items():
        tiles.append(TileImage(physical, image(program, data)))
    if others is not None:
        index = image(*others)
        ids = to_physical(np.arange(TILES)).tolist()
        tiles += [TileImage(physical, index) for physical in ids if physical not in programs]
    tiles.sort(key=lambda tile: tile.physical_tile)
    exchange = HostExchange(
        startup_mark=23,
        pages=[HostPage(0, 4096), HostPage(1, 8192)],
        attach_order=[0, 1],
        calls=calls or [],
    )
    return Package("test", blobs, images, tiles, host_exchange=exchange, symbols=[Symbol("start", 0x4C014)])


def worked_package(
    *,
    sender: Program | None = None,
    receiver: Program | None = None,
    idle: Program | None = None,
    sender_packets: list[int] | None = None,
    odd_tiles: Mapping[int, Program] | None = None,
) -> Package:
    """Section 6; any of the three programs can be replaced, and some idle tiles can run another one."""
    zeros = {COMPLETION: 4}
    programs: dict[int, tuple[Program, Mapping[int, bytes | int]]] = {
        SENDER: (
            sender or CLASS_A,
            {0x50000: words_to_bytes(sender_packets or PACKETS_0), LANDING: 12, **zeros},
        ),
        RECEIVER: (
            receiver or CLASS_B,
            {0x50000: words_to_bytes(PACKETS_53), 0x50160: 0x20, TARGET: 12, **zeros},
        ),
    }
    for physical, program in (odd_tiles or {}).items():
        programs[physical] = (program, zeros)
    return build(programs, (idle or CLASS_C, zeros))


def separated_package(*, xreq: int = 0x100, owner: Program | None = None) -> Package:
    """Section 3.4: the owner is another tile than the target."""
    zeros = {COMPLETION: 4}
    return build(
        {
            4: (owner or OWNER_4, {0x50000: words_to_bytes([xreq, 0]), **zeros}),
            260: (TARGET_260, {0x50008: words_to_bytes([0xCC82020C, 0x00004003]), LANDING: 12, **zeros}),
        },
        (IDLE_HOST_ONLY, zeros),
    )


def pages() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Command page and data page as the host prepares them: input in slot 0, poisoned output in slot 1."""
    command, data = np.zeros(4096, np.uint8), np.zeros(8192, np.uint8)
    data[:12] = np.frombuffer(INPUT, np.uint8)
    data[4096:4108] = 0xA5
    return command, data
