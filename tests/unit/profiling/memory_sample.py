"""A package with a few buffers on three tiles, small enough to count by hand."""

from __future__ import annotations

import numpy as np

from tilewright.ipu21.machine.topology import TILES
from tilewright.package.program_info import (
    PLACED,
    AreaInfo,
    BufferInfo,
    ClassInfo,
    ConstantInfo,
    OperationInfo,
    ProgramInfo,
    StepInfo,
)
from tilewright.package.records import (
    EXECUTE,
    READ,
    WRITE,
    Debug,
    Image,
    Package,
    ProfilePlan,
    ProfileStep,
    Region,
    Segment,
    TileImage,
)

GRAPH = """tilewright graph 1
graph g {
  input %x : float32[4, 4]
  constant %w : float32[4, 4]
  %mm = matmul(%x, %w) : float32[4, 4]  @ "a.py:1"
  output y = %mm
}
"""
STEPS = ("initialize", "input", "mm.multiply", "output")


def memory_package(*, overlap: bool = False, names: tuple[str, str, str] = ("w", "x", "y")) -> Package:
    """Tiles 0 and 5 hold w (1000 bytes, always), x (64, input), y (96 + 32, multiply, output), 7 has w.

    Code is 400 bytes at 0x4c010 on them, of which a row has 40 on tile 5; y's place is cleared by the image.
    """
    y = 0x80000 if overlap else 0x90000
    segments = [
        Segment(0x4C010, 400, 0, 0, 400, READ | EXECUTE),
        Segment(0x90000, 128, -1, 0, 0, READ | WRITE),
        Segment(0x54000, 24, 0, 0, 24, READ),
    ]
    images = [Image(0x4C014, 0, 0, segments), Image(0x4C014, 0, 0, segments[:1])]
    placed = np.array([(0, 0x80000, 1000, 0, 0, 3), (1, 0x64000, 64, 0, 1, 2), (2, y, 96, 32, 2, 3)], PLACED)
    program = ProgramInfo(
        buffers=[
            BufferInfo(names[0], "weight", "mm"),
            BufferInfo(names[1], "input"),
            BufferInfo(names[2], "value", "mm", "a16"),
        ],
        classes=[ClassInfo(np.array([0, 5], "<u2"), placed), ClassInfo(np.array([7], "<u2"), placed[:1])],
        steps=[StepInfo(), StepInfo(), StepInfo("mm", "gemm_f16", 100.0, "16 rows"), StepInfo()],
        operations=[OperationInfo("mm", ["grid 1 x 1 x 2", "mm.multiply: gemm_f16"], 2)],
        constants=[ConstantInfo(names[0], "w", (4, 4))],
        areas=[AreaInfo("stacks", 0x580E0, 0x600)],
    )
    return Package(
        compiler_version="test",
        blobs=[bytes(400)],
        images=images,
        tiles=[TileImage(tile, 0 if tile in (0, 5, 7) else 1) for tile in range(TILES)],
        profile=ProfilePlan([ProfileStep(name, "compute" if "." in name else "host") for name in STEPS], []),
        regions=[Region(5, 0x4C100, 40, "mm.receive.row")],
        debug=Debug(graph=GRAPH, program=program),
    )
