"""A small valid package to take apart: two inputs, a weight and an output on a handful of tiles."""

from __future__ import annotations

import numpy as np

from tilewright.package.blobs import BlobStore
from tilewright.package.orders import pack_slices
from tilewright.package.program_info import (
    PLACED,
    AreaInfo,
    BufferInfo,
    ClassInfo,
    ConstantInfo,
    LoopInfo,
    OperationInfo,
    ProgramInfo,
    StepInfo,
    ValueInfo,
)
from tilewright.package.records import (
    ALL_TILES,
    EXECUTE,
    HOST_SLICE,
    LINE,
    MARK,
    NO_BLOB,
    PROVISIONAL_WORD,
    READ,
    SLICE,
    WRITE,
    Binding,
    CodeLines,
    ConfigWrite,
    Debug,
    EntryPoint,
    HostCall,
    HostExchange,
    HostPage,
    Image,
    Package,
    ProfilePlan,
    ProfileStep,
    Region,
    Segment,
    Symbol,
    TileImage,
)

NOP = 0x19E00000
PROVISIONAL = 0x12345678


def code(*words: int) -> bytes:
    return np.array([NOP, *words], "<u4").tobytes()


def make_package() -> Package:
    """x f32[4, 20] as a16 on tiles 0 and 5 (rows halved), w f32[20, 16] as b16 on tile 0, k i32[] row-major,
    y f32[4, 16] row-major on tile 5."""
    store = BlobStore()
    shared = store.add(bytes(range(64)) * 40)
    worker = store.add(code(1, 2, PROVISIONAL, 4, 5))
    follower = store.add(code(1, 7))

    def image(blob: int, size: int, marks: int, extra: list[Segment]) -> Image:
        segments = [
            Segment(0x4C010, size, blob, 0, size, READ | EXECUTE),
            Segment(0x58000, 0x20, NO_BLOB, 0, 0, READ | WRITE),
            *extra,
        ]
        return Image(0x4C014, 0, 0x58000, segments, marks)

    images = [
        image(worker, 24, 0, [Segment(0x60000, 4096, shared, 64, 1024, READ)]),
        image(follower, 12, -1, []),
    ]
    x = Binding(
        "x", "float32", "float16", (4, 20), "a16", (4, 20),
        np.array(
            [
                (0, 0x70000, 0, 128, 0, 2, 2, 0, 20, 32),
                (5, 0x70000, 128, 128, 2, 2, 2, 0, 20, 32),
            ],
            SLICE,
        ),
    )  # fmt: skip
    k = Binding(
        "k", "int32", "int32", (), "row-major", (1, 1),
        np.array([(0, 0x70100, 0, 8, 0, 1, 1, 0, 1, 1)], SLICE),
    )  # fmt: skip
    w = Binding(
        "w", "float32", "float16", (20, 16), "b16", (20, 16),
        np.array([(0, 0x80000, 0, 1024, 0, 20, 32, 0, 16, 16)], SLICE),
    )  # fmt: skip
    w.blob = store.add(pack_slices(w, np.arange(320, dtype=np.float32).reshape(20, 16)))
    y = Binding(
        "y", "float32", "float32", (4, 16), "row-major", (4, 16),
        np.array([(5, 0x90000, 0, 256, 0, 4, 4, 0, 16, 16)], SLICE),
    )  # fmt: skip
    calls = [
        HostCall(
            "initialize",
            1,
            4,
            inputs=np.array([(1, 0, 0, 512), (1, 0, 512, 512)], HOST_SLICE),
            input_batch_ends=[1, 2],
        ),
        HostCall(
            "run",
            0,
            6,
            inputs=np.array([(1, 0, 0, 128), (1, 4096, 128, 128), (1, 0, 256, 8)], HOST_SLICE),
            outputs=np.array([(1, 4096, 0, 256)], HOST_SLICE),
            input_batch_ends=[2, 3],
            output_batch_ends=[1],
        ),
    ]
    steps = [ProfileStep("inputs", "host"), ProfileStep("gemm", "compute"), ProfileStep("outputs", "host")]
    return Package(
        compiler_version="test 1",
        blobs=store.blobs,
        images=images,
        tiles=[TileImage(tile, 0 if tile in (0, 5) else 1) for tile in range(1472)],
        inputs=[x, k],
        outputs=[y],
        weights=[w],
        host_exchange=HostExchange(23, 0, 0, [HostPage(0, 4096), HostPage(1, 8192)], [0, 1], calls),
        entry_points=[EntryPoint("run", 0, 6)],
        device_config_writes=[ConfigWrite(0x4004, 1)],
        profile=ProfilePlan(steps, [np.array([(0x4C014, 0), (0x4C018, 1), (0x4C020, 2)], MARK)]),
        symbols=[Symbol("start", 0x4C014), Symbol("gemm", 0x4C018)],
        regions=[Region(5, 0x70000, 128, "x"), Region(ALL_TILES, 0x4C010, 12, "code")],
        lines=CodeLines(
            ["start.S", "gemm.S"], np.array([(0x4C014, 0, 7), (0x4C018, 1, 3), (0x4C01C, 1, 0)], LINE)
        ),
        provisional=np.array([(0x4C01C, PROVISIONAL)], PROVISIONAL_WORD),
        debug=Debug("graph text µ", "layouts text", [["x"], ["x", "w", "y"], ["y"]], make_program(y)),
    )


def make_program(value: Binding) -> ProgramInfo:
    """Debug information with one entry of everything; `value` lies where that binding does."""
    y = Binding("mm", "float32", "float32", value.shape, value.order, value.view, value.slices.copy())
    return ProgramInfo(
        buffers=[BufferInfo("x", "input", "x", "a16 [rows 4]"), BufferInfo("mm", "value", "mm")],
        classes=[
            ClassInfo(
                np.array([0, 5], "<u2"),
                np.array([(0, 0x70000, 128, 16, 0, 1), (1, 0x90000, 256, 0, 1, 2)], PLACED),
            )
        ],
        steps=[StepInfo(), StepInfo("mm", "gemm", 123.5, "16 rows"), StepInfo()],
        operations=[OperationInfo("mm", ["grid 1 x 1", "one call µ"], 2)],
        values=[ValueInfo(y, 1, 1, "mm"), ValueInfo(y, 1, 1, "mm", True)],
        constants=[ConstantInfo("w", "w0", (20, 16))],
        loops=[LoopInfo(0, 1, 3), LoopInfo(1, 1, 2)],
        areas=[AreaInfo("stacks", 0x580E0, 0x600)],
    )
