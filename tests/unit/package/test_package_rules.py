"""One test per rule: break it in a valid package, and it is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from package_sample import NOP, code, make_package

from tilewright.errors import PackageError
from tilewright.ipu21.machine import memory
from tilewright.package import validate, write_package
from tilewright.package.records import (
    HOST_SLICE,
    MARK,
    SLICE,
    ConfigWrite,
    EntryPoint,
    HostPage,
    Package,
    ProfileStep,
    Region,
    Segment,
    Symbol,
    TileImage,
)
from tilewright.package.rules import bindings as binding_rules
from tilewright.package.rules import images as image_rules

pytestmark = pytest.mark.unit

Break = Callable[[Package], object]
RULES: list[tuple[str, Break, str]] = []


def rule(name: str, broken: Break, message: str) -> None:
    RULES.append((name, broken, message))


def put(target: object, /, **values: object) -> None:
    for name, value in values.items():
        setattr(target, name, value)


def put_row(rows: NDArray[np.void], number: int, **values: int) -> None:
    for name, value in values.items():
        rows[number][name] = value


def first_segment(package: Package) -> Segment:
    return package.images[0].segments[0]


def data_segment(package: Package) -> Segment:
    return package.images[0].segments[2]


def with_code(package: Package, content: bytes) -> None:
    package.blobs.append(content)
    put(first_segment(package), blob=len(package.blobs) - 1, file_size=len(content), memory_size=24)


# --- identity ---
rule("target", lambda p: put(p, target="ipu1"), "target 'ipu1'")
rule("memory", lambda p: put(p, tile_memory_size=0), "tile memory of 0x0")
rule("compiler text", lambda p: put(p, compiler_version="a\nb"), "compiler version .* cannot be printed")
rule("compiler type", lambda p: put(p, compiler_version=1), "compiler version is 1, not a text")
rule("compiler surrogate", lambda p: put(p, compiler_version="\ud800"), "cannot be printed")
rule("compiler length", lambda p: put(p, compiler_version="x" * 5000), "longer than 4096")

# --- blobs ---
rule("empty blob", lambda p: p.blobs.append(b""), "blob 4: is empty")
rule("blob type", lambda p: p.blobs.append(bytearray(b"x")), "blob 4: is empty or no byte string")  # type: ignore[arg-type]  # on purpose
rule("equal blobs", lambda p: p.blobs.append(p.blobs[1]), "blob 4: has the content of blob 1")

# --- tiles ---
rule("no tiles", lambda p: p.tiles.clear(), "0 tiles instead of all 1472")
rule("missing tile", lambda p: p.tiles.pop(), "1471 tiles instead of all 1472")
rule("extra tile", lambda p: p.tiles.append(TileImage(1472, 0)), "1473 tiles")
rule(
    "tile twice", lambda p: put(p.tiles[3], physical_tile=2), "tile entry 3: physical tile 2 where 3 belongs"
)
rule("unsorted", lambda p: p.tiles.reverse(), "physical tile 1471 where 0 belongs")
rule("image of tile", lambda p: put(p.tiles[3], image=2), "tile entry 3: image 2 of only 2")
rule("negative image", lambda p: put(p.tiles[3], image=-1), "image -1 is outside 0")

# --- images ---
rule("no segments", lambda p: p.images[1].segments.clear(), "image 1: has no segments")
rule("misaligned", lambda p: put(data_segment(p), address=0x60002), "address 0x60002 is no multiple of 4")
rule("below", lambda p: put(first_segment(p), address=0x4C00C), "leaves the loadable memory")
rule(
    "above", lambda p: put(data_segment(p), address=memory.LOADABLE_END - 4092), "leaves the loadable memory"
)
rule("wrap", lambda p: put(data_segment(p), memory_size=2**32 - 4), "leaves the loadable memory")
rule("beyond 32 bits", lambda p: put(data_segment(p), address=2**32), "address 4294967296 is outside")
rule("not a number", lambda p: put(data_segment(p), address=1.0), "address is 1.0, not an integer")
rule("no memory", lambda p: put(data_segment(p), memory_size=0, file_size=0), "occupies no memory")
rule("flags", lambda p: put(data_segment(p), flags=8), "unknown flags 0x8")
rule("code above", lambda p: put(data_segment(p), flags=5, address=0x80000), "code runs only below 0x80000")
rule("code across", lambda p: put(data_segment(p), flags=5, address=0x7FF00), "code runs only below 0x80000")
rule("file over memory", lambda p: put(data_segment(p), memory_size=1020), "1024 file bytes in 1020 bytes")
rule("blob index", lambda p: put(data_segment(p), blob=4), "blob 4 of only 4")
rule(
    "blob range",
    lambda p: put(data_segment(p), blob_offset=2000),
    "bytes 2000..3024 of blob 0, which has 2560",
)
rule("blob wrap", lambda p: put(data_segment(p), blob_offset=2**64 - 1), "of blob 0, which has 2560")
rule("blob over 64 bits", lambda p: put(data_segment(p), blob_offset=2**64), "blob offset .* is outside")
rule("no blob", lambda p: put(data_segment(p), blob=-1), "names no blob")
rule("overlap", lambda p: put(data_segment(p), address=0x58010), "segments 1 and 2 overlap at 0x58010")
rule("lowest", lambda p: put(first_segment(p), address=0x4C014), "lowest segment at 0x4c014")
rule("launch word", lambda p: with_code(p, code(1)[4:] + code(1)), "is 0x00000001, not the reserved nop")
rule("no launch word", lambda p: put(first_segment(p), file_size=0), "not the reserved nop")
rule("entry", lambda p: put(p.images[0], entry_point=0x4C018), "the loader starts every tile at 0x4c014")
rule(
    "entry bytes", lambda p: with_code(p, NOP.to_bytes(4, "little")), "lies in no executable segment's bytes"
)
rule(
    "entry not executable", lambda p: put(first_segment(p), flags=1), "lies in no executable segment's bytes"
)
rule(
    "command address",
    lambda p: put(p.images[0], command_address=0x5F000),
    "command address 0x5f000 lies in no",
)
rule(
    "diagnostic",
    lambda p: put(p.images[0], diagnostic_address=0x58020),
    "diagnostic address 0x58020 lies in no",
)
rule("diagnostic odd", lambda p: put(p.images[0], diagnostic_address=0x58001), "no multiple of 4")
rule("mark table", lambda p: put(p.images[0], mark_table=1), "mark table 1 of only 1")
rule("negative mark table", lambda p: put(p.images[0], mark_table=-2), "mark table -2")


# --- bindings ---
def edit(package: Package, field: str, value: int, number: int = 0) -> None:
    """Change a slice of input x."""
    package.inputs[0].slices[field][number] = value


def again(package: Package) -> None:
    """x on two more tiles, as exact copies, and one of them moved."""
    x = package.inputs[0]
    copies = x.slices.copy()
    copies["tile"] += 1
    copies["column"][1] = 1
    copies["columns"][1] = 19
    x.slices = np.concatenate([x.slices, copies])


def shift_second(package: Package, by: int) -> None:
    edit(package, "file_offset", 128 + by, 1)


rule("empty name", lambda p: put(p.inputs[0], name=""), "input 0: name is empty")
rule("name twice", lambda p: put(p.outputs[0], name="x"), "binding name 'x' occurs twice")
rule("host type", lambda p: put(p.inputs[0], host_dtype="float64"), "unknown host type 'float64'")
rule("device type", lambda p: put(p.inputs[0], device_dtype="f16"), "unknown device type 'f16'")
rule(
    "conversion",
    lambda p: put(p.inputs[0], device_dtype="int8"),
    "no conversion from host float32 to device int8",
)
rule("order", lambda p: put(p.inputs[0], order="c16"), "unknown element order 'c16'")
rule("rank", lambda p: put(p.inputs[0], shape=(80, *[1] * 16)), "rank 17")
rule("view rank", lambda p: put(p.inputs[0], view=(80,)), "is not rows and columns")
rule("empty shape", lambda p: put(p.inputs[0], shape=(0, 20)), r"shape \[0, 20\] has no elements")
rule("negative extent", lambda p: put(p.inputs[0], shape=(-4, -20)), "shape extent -4")
rule("view size", lambda p: put(p.inputs[0], view=(4, 21)), "view of 4 x 21 for shape")
rule("slices type", lambda p: put(p.inputs[0], slices=np.zeros(2)), "no one-dimensional array")
rule("no slices", lambda p: put(p.inputs[0], slices=np.zeros(0, SLICE)), "input 'x': has no slices")
rule("tile", lambda p: edit(p, "tile", 1472), "slice 0 is on a tile that does not exist")
rule("slice size", lambda p: edit(p, "size", 0), "slice 0 has no bytes")
rule("slice below", lambda p: edit(p, "address", memory.TILE_BASE - 8), "slice 0 leaves the tile memory")
rule("slice above", lambda p: edit(p, "address", memory.TILE_END - 120), "slice 0 leaves the tile memory")
rule("slice wrap", lambda p: edit(p, "address", 2**32 - 8), "slice 0 leaves the tile memory")
rule("slice address", lambda p: edit(p, "address", 0x70004), "needs a multiple of 8 as address")
rule("slice length", lambda p: edit(p, "size", 132), "needs a multiple of 8 as size")
rule("offset alignment", lambda p: shift_second(p, 4), "needs a multiple of 8 as file_offset")
rule("offset 2^64-8", lambda p: edit(p, "file_offset", 2**64 - 8, 1), "slice 1 is over 2147483648 bytes into")
rule("offset 2^63", lambda p: edit(p, "file_offset", 2**63, 1), "slice 1 is over 2147483648 bytes into")
rule("no rows", lambda p: edit(p, "rows", 0), "slice 0 carries no elements")
rule("outside view", lambda p: edit(p, "row", 3), "slice 0 leaves the binding's view")
rule("outside columns", lambda p: edit(p, "column", 2**32 - 1), "slice 0 leaves the binding's view")
rule("over padding", lambda p: edit(p, "padded_rows", 1), "carries more than its padded extents")
rule("padding of order", lambda p: edit(p, "padded_columns", 24), "padded columns that a16 does not allow")
rule(
    "rows of order",
    lambda p: p.weights[0].slices["padded_rows"].__setitem__(0, 20),
    "padded rows that b16 does not",
)
rule("one row", lambda p: put(p.inputs[0], order="row16"), "has more than the one row of row16")
rule("too small", lambda p: edit(p, "padded_rows", 3), "too small for its padded extents")
rule("too small, huge", lambda p: edit(p, "padded_rows", 2**32 - 1), "too small for its padded extents")
rule(
    "hole at 0",
    lambda p: p.inputs[0].slices["file_offset"].__iadd__(8),
    "the first 8 bytes belong to no slice",
)
rule("hole", lambda p: shift_second(p, 8), "slices 0 and 1 leave a hole at byte 136")
rule("overlap in file", lambda p: shift_second(p, -8), "slices 0 and 1 overlap at byte 120")
rule("copies differ", again, "share host bytes but not their place")
rule("uncovered", lambda p: edit(p, "columns", 19), r"element \(0, 19\) lies in no slice")
rule("input blob", lambda p: put(p.inputs[0], blob=0), "only weights have a blob")
rule("no weight blob", lambda p: put(p.weights[0], blob=-1), "blob -1 is outside")
rule("weight blob index", lambda p: put(p.weights[0], blob=4), "blob 4 of only 4")
rule("weight bytes", lambda p: put(p.weights[0], blob=0), "blob of 2560 bytes for slices of 1024")
rule(
    "over code",
    lambda p: edit(p, "address", 0x4C020, 1),
    "slice 1 at 0x4c020 of tile 5 lies in executable memory",
)
rule("over another", lambda p: edit(p, "address", 0x70088), "on tile 0, 'x' and 'k' both hold 0x70100")


def output_twice(package: Package) -> None:
    y = package.outputs[0]
    copy = y.slices.copy()
    copy["file_offset"] = 256
    y.slices = np.concatenate([y.slices, copy])


rule("output twice", output_twice, r"output 'y': element \(0, 0\) lies in several slices")


# --- host exchange ---
def move(package: Package, field: str, value: int, number: int = 0) -> None:
    """Change an input slice of call run."""
    package.host_exchange.calls[1].inputs[field][number] = value


def run_call(package: Package, **values: object) -> None:
    put(package.host_exchange.calls[1], **values)


def exchange(package: Package, **values: object) -> None:
    put(package.host_exchange, **values)


rule("startup mark", lambda p: exchange(p, startup_mark=0x10000), "startup mark 65536 is outside")
rule("page twice", lambda p: exchange(p, pages=[HostPage(0, 4096)] * 2), "page index 0 occurs twice")
rule(
    "page size 0",
    lambda p: put(p.host_exchange.pages[1], size=0),
    "host page 1: size 0 is no positive multiple",
)
rule(
    "page size odd",
    lambda p: put(p.host_exchange.pages[1], size=8200),
    "size 8200 is no positive multiple of 4096",
)
rule("page size 2^32", lambda p: put(p.host_exchange.pages[1], size=2**32), "size 4294967296 is outside")
rule("pages too large", lambda p: put(p.host_exchange.pages[1], size=2**29), "beyond the device's reach")
rule("attach order", lambda p: exchange(p, attach_order=[0]), "does not name every page exactly once")
rule("attached twice", lambda p: exchange(p, attach_order=[0, 1, 1]), "does not name every page exactly once")
rule("command page", lambda p: exchange(p, command_page=2), "command page 2 does not exist")
rule("command alignment", lambda p: exchange(p, command_offset=2), "command offset 0x2 is no multiple of 4")
rule("command range", lambda p: exchange(p, command_offset=4096), "command word at 0x1000 leaves page 0")
rule("command wrap", lambda p: exchange(p, command_offset=2**64 - 4), "command offset .* is outside")
rule("call name", lambda p: run_call(p, name=""), "call 1: name is empty")
rule("unknown call", lambda p: run_call(p, name="train"), "unknown call 'train'")
rule("call twice", lambda p: run_call(p, name="initialize"), "call name 'initialize' occurs twice")
rule("command twice", lambda p: run_call(p, command=1), "command 1 occurs twice")
rule("phases", lambda p: run_call(p, phases=5), "5 phases for 3 batches")
rule("invocations", lambda p: run_call(p, invocations=2), "6 phases for 3 batches in each of 2 invocations")
rule("too many invocations", lambda p: run_call(p, invocations=65537), "65537 invocations")
rule("no invocation", lambda p: run_call(p, invocations=0), "0 invocations")
rule("run missing", lambda p: p.host_exchange.calls.pop(), "binding 'x' is moved by no call")
rule(
    "initialize missing",
    lambda p: p.host_exchange.calls.pop(0),
    "weight 'w' is moved by no call, and the image of tile",
)
rule("ends equal", lambda p: run_call(p, input_batch_ends=[2, 2, 3]), "batch end 2 does not follow 2")
rule("ends short", lambda p: run_call(p, input_batch_ends=[2]), "batches end at 2 of 3 slices")
rule("ends absent", lambda p: run_call(p, input_batch_ends=[]), "batches end at 0 of 3 slices")
rule("ends beyond", lambda p: run_call(p, input_batch_ends=[2, 4]), "batches end at 4 of 3 slices")
rule("slices no table", lambda p: run_call(p, inputs=np.zeros(3)), "list is no one-dimensional array")
rule("slice page", lambda p: move(p, "page", 7), "slice 0 names a page that does not exist")
rule("slice empty", lambda p: move(p, "size", 0, 2), "slice 2 has no bytes")
rule("slice beyond page", lambda p: move(p, "page_offset", 8192 - 64, 1), "slice 1 leaves its page")
rule("page offset 2^64-4", lambda p: move(p, "page_offset", 2**64 - 4), "slice 0 leaves its page")
rule(
    "file offset 2^64-8", lambda p: move(p, "file_offset", 2**64 - 8), "slice 0 leaves the call's host bytes"
)
rule("slice word", lambda p: move(p, "page_offset", 2, 2), "slice 2 is not made of whole words")
rule("on command", lambda p: move(p, "page", 0), "slice 0 covers the command word")
rule(
    "batch overlap",
    lambda p: move(p, "page_offset", 64, 1),
    "slices 0 and 1 of batch 0 overlap in page 1 at 0x40",
)
rule(
    "not moved",
    lambda p: move(p, "file_offset", 128, 2),
    "byte 256 of the call's 264 host bytes is never moved",
)
rule("hole moved", lambda p: move(p, "file_offset", 8), "byte 0 of the call's 264 host bytes is never moved")
rule("moved too far", lambda p: move(p, "size", 16, 2), "move 272 host bytes, the bindings have 264")


def output_moved_twice(package: Package) -> None:
    more = np.array([(1, 0, 128, 128)], HOST_SLICE)
    call = package.host_exchange.calls[1]
    run_call(package, outputs=np.concatenate([call.outputs, more]), output_batch_ends=[2])


def initialize_with_output(package: Package) -> None:
    call = package.host_exchange.calls[0]
    put(call, outputs=np.array([(1, 0, 0, 8)], HOST_SLICE), output_batch_ends=[1], phases=6)


rule("output moved twice", output_moved_twice, "byte 128 of the call's host bytes is moved twice")
rule("initialize has no outputs", initialize_with_output, "move 8 host bytes, the bindings have 0")

# --- entry points and configuration ---
rule("entry name", lambda p: put(p.entry_points[0], name=""), "entry point 0: name is empty")
rule(
    "entry twice", lambda p: p.entry_points.append(EntryPoint("run", 0, 6)), "entry point 'run' occurs twice"
)
rule("entry disagrees", lambda p: put(p.entry_points[0], command=3), "'run' disagrees with the call")
rule("entry number", lambda p: put(p.entry_points[0], external_syncs=-1), "external syncs -1")


def write(package: Package, offset: int, value: int = 0) -> None:
    package.device_config_writes.append(ConfigWrite(offset, value))


rule("config alignment", lambda p: write(p, 0x4006), "offset 0x4006 is no multiple of 4")
rule("config range", lambda p: write(p, 0x80000), "offset 524288 is outside")
rule("config value", lambda p: write(p, 0x4008, 2**32), "value 4294967296 is outside")
rule("config twice", lambda p: write(p, 0x4004), "offset '0x4004' occurs twice")
rule("mark GS1", lambda p: write(p, 0x302C), "register 0x302c belongs to the host marks")
rule("mark GS2", lambda p: write(p, 0x3030), "register 0x3030 belongs to the host marks")
rule("autoloader", lambda p: write(p, 0x2070), "register 0x2070 belongs to the autoloader")
rule("debug window", lambda p: write(p, 0x30000), "register 0x30000 belongs to the tile debug window")
rule("debug window end", lambda p: write(p, 0x46FFC), "register 0x46ffc belongs to the tile debug window")


# --- profile, provisional words, names ---
def marks(package: Package, *rows: tuple[int, int]) -> None:
    package.profile.mark_tables[0] = np.array(list(rows), MARK)


rule("step name", lambda p: put(p.profile.steps[0], name=""), "profile step 0: name is empty")
rule("step kind", lambda p: put(p.profile.steps[0], kind="wait"), "unknown kind 'wait'")
rule(
    "too many steps",
    lambda p: p.profile.steps.extend([ProfileStep("s", "copy")] * 65536),
    "over the limit of 65536",
)
rule("mark dtype", lambda p: put(p.profile, mark_tables=[np.zeros(1)]), "mark table 0: table is no")
rule("mark odd", lambda p: marks(p, (0x4C016, 0)), "mark 0 at 0x4c016|between instructions")
rule("mark order", lambda p: marks(p, (0x4C018, 0), (0x4C018, 1)), "marks 0 and 1 are not in order")
rule("mark step", lambda p: marks(p, (0x4C018, 3)), "mark 0 names step 3 of 3")
rule(
    "mark outside", lambda p: marks(p, (0x4C028, 0)), "image 0: mark 0 of mark table 0 lies in no executable"
)
rule("provisional type", lambda p: put(p, provisional=np.zeros(1)), "provisional words: list is no")
rule(
    "provisional absent",
    lambda p: p.provisional["word"].__setitem__(0, 9),
    "0x00000009 is at 0x4c01c of no image",
)
rule(
    "provisional place", lambda p: p.provisional["address"].__setitem__(0, 0x60000), "at 0x60000 of no image"
)
rule("provisional odd", lambda p: p.provisional["address"].__setitem__(0, 0x4C01E), "is between instructions")
rule(
    "provisional order",
    lambda p: put(p, provisional=np.repeat(p.provisional, 2)),
    "entries 0 and 1 are not in order",
)
rule("symbol name", lambda p: put(p.symbols[0], name=""), "symbol 0: name is empty")
rule("symbol place", lambda p: p.symbols.append(Symbol("far", memory.TILE_END + 4)), "outside tile memory")
rule("symbol order", lambda p: p.symbols.reverse(), "not in order of address")
rule("line order", lambda p: put_row(p.lines.rows, 1, address=0x4C014), "rows 0 and 1 are not in order")
rule("line place", lambda p: put_row(p.lines.rows, 0, address=4), "outside tile memory")
rule("line file", lambda p: p.lines.files.pop(), "row 1 is of file 1 of only 1")
rule("line number", lambda p: put_row(p.lines.rows, 1, line=1 << 31), "row 1 is line 2147483648")
rule("line file name", lambda p: p.lines.files.append(""), "file is empty")
rule("region name", lambda p: put(p.regions[0], name=""), "region 0: name is empty")
rule("region tile", lambda p: put(p.regions[0], physical_tile=1472), "'x' is on tile 1472")
rule("region size", lambda p: put(p.regions[0], size=0), "'x' is empty or leaves")
rule(
    "region end", lambda p: p.regions.append(Region(0, memory.TILE_END - 4, 8, "r")), "'r' is empty or leaves"
)
rule("live steps", lambda p: p.debug.live.pop(), "live tensors of 2 steps, the profile has 3")  # type: ignore[union-attr]  # the sample has one
rule("live name", lambda p: p.debug.live[0].append(""), "live tensor is empty")  # type: ignore[union-attr]  # the sample has one
rule("graph text", lambda p: put(p.debug, graph="\ud800"), "graph text is not valid Unicode")


def test_the_sample_is_valid() -> None:
    validate(make_package())


@pytest.mark.parametrize(("broken", "message"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(broken: Break, message: str) -> None:
    package = make_package()
    broken(package)
    with pytest.raises(PackageError, match=message):
        validate(package)
    with pytest.raises(PackageError, match=message):
        write_package(package)


def test_limits_of_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_rules, "MAX_BLOB_BYTES", 1000)
    with pytest.raises(PackageError, match="blob 0: 2560 bytes are over the limit"):
        validate(make_package())
    monkeypatch.setattr(image_rules, "MAX_BLOB_BYTES", 10000)
    monkeypatch.setattr(image_rules, "MAX_TOTAL_BYTES", 3000)
    with pytest.raises(PackageError, match="blobs of 3620 bytes are over the limit of 3000"):
        validate(make_package())


def test_limits_of_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding_rules, "_MAX_GRID", 3)
    with pytest.raises(PackageError, match="cut at too many different places"):
        validate(make_package())
    monkeypatch.setattr(binding_rules, "_MAX_GRID", 1 << 24)
    monkeypatch.setattr(binding_rules, "MAX_TOTAL_BYTES", 260)
    with pytest.raises(PackageError, match="input bytes of all bindings are over the limit"):
        validate(make_package())


def test_allowed_variations() -> None:
    """What the rules must not refuse."""
    package = make_package()
    # The same part on two tiles, from the same host bytes.
    x = package.inputs[0]
    copy = x.slices.copy()
    copy["tile"] += 1
    x.slices = np.concatenate([x.slices, copy])
    # An output where an input was, and the last word of tile memory.
    package.outputs[0].slices["address"] = memory.TILE_END - 256
    package.symbols.append(Symbol("end", memory.TILE_END))
    # One page used by successive batches is the sample itself; a command word elsewhere is fine.
    package.host_exchange.command_offset = 4092
    # A segment may use no more than part of a blob another segment uses.
    package.images[1].segments.append(Segment(0x64000, 64, 0, 0, 64, 1))
    validate(package)


def test_package_without_host() -> None:
    package = make_package()
    package.inputs, package.outputs, package.weights = [], [], []
    package.host_exchange = type(package.host_exchange)()
    package.entry_points = []
    validate(package)
