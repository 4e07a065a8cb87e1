"""Records to Cap'n Proto message and back: the only module that opens and closes them.

It knows the shape of a message and nothing of its meaning. pycapnp carries no types, so everything it returns
is converted to Python and NumPy values here. In the other direction it takes Python integers only, while
records may hold NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import capnp
import numpy as np

from tilewright.errors import PackageError

from .binding_wire import (
    NONE,
    get_binding,
    get_blob,
    put_binding,
    put_blob,
    read_index,
    read_numbers,
    read_rows,
    read_table,
)
from .blobs import Budget
from .digest import FORMAT_VERSION, blob_digests, debug_digest, meaning_digest
from .limits import NESTING, TRAVERSAL_FACTOR
from .line_wire import get_lines, put_lines
from .program_wire import get_program, put_program
from .records import (
    HOST_SLICE,
    MARK,
    PROVISIONAL_WORD,
    TILE_IMAGE,
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
from .target import TARGET, TILE_BASE, TILE_BYTES

_U32 = np.dtype("<u4")


@cache
def _schema() -> Any:
    capnp.remove_import_hook()
    return capnp.load(str(Path(__file__).parent / "schema" / "ipuexe.capnp"))


# --- writing ---


def to_message(package: Package) -> bytes:
    """The file bytes of a valid package. Equal packages give equal bytes."""
    digests = blob_digests(package)
    out = _schema().Package.new_message()
    out.version = FORMAT_VERSION
    out.target = package.target
    out.tileMemoryBase = int(package.tile_memory_base)
    out.tileMemorySize = int(package.tile_memory_size)
    out.compilerVersion = package.compiler_version
    for item, blob, digest in zip(out.init("blobs", len(digests)), package.blobs, digests, strict=True):
        put_blob(item, blob, digest)
    for item, image in zip(out.init("images", len(package.images)), package.images, strict=True):
        _put_image(item, image)
    tiles = np.array([(tile.physical_tile, tile.image) for tile in package.tiles], TILE_IMAGE)
    out.tiles = tiles.tobytes()
    for name, group in (
        ("inputs", package.inputs),
        ("outputs", package.outputs),
        ("weights", package.weights),
    ):
        for item, binding in zip(out.init(name, len(group)), group, strict=True):
            put_binding(item, binding)
    _put_exchange(out.hostExchange, package.host_exchange)
    for item, entry in zip(
        out.init("entryPoints", len(package.entry_points)), package.entry_points, strict=True
    ):
        item.name, item.command, item.externalSyncs = (
            entry.name,
            int(entry.command),
            int(entry.external_syncs),
        )
    writes = package.device_config_writes
    for item, write in zip(out.init("configWrites", len(writes)), writes, strict=True):
        item.offset, item.value = int(write.offset), int(write.value)
    steps = package.profile.steps
    for item, step in zip(out.init("steps", len(steps)), steps, strict=True):
        item.name, item.kind = step.name, step.kind
    tables = out.init("markTables", len(package.profile.mark_tables))
    for index, table in enumerate(package.profile.mark_tables):
        tables[index] = table.tobytes()
    out.provisional = package.provisional.tobytes()
    out.digest = meaning_digest(package, digests)
    _put_debug(out.debug, package)
    data: bytes = out.to_bytes()
    return data


def _put_image(item: Any, image: Image) -> None:
    item.entryPoint = int(image.entry_point)
    item.commandAddress = int(image.command_address)
    item.diagnosticAddress = int(image.diagnostic_address)
    item.markTable = int(image.mark_table & NONE)
    for entry, part in zip(item.init("segments", len(image.segments)), image.segments, strict=True):
        entry.address = int(part.address)
        entry.memorySize = int(part.memory_size)
        entry.blob = int(part.blob & NONE)
        entry.blobOffset = int(part.blob_offset)
        entry.fileSize = int(part.file_size)
        entry.flags = int(part.flags)


def _put_exchange(item: Any, exchange: HostExchange) -> None:
    item.startupMark = int(exchange.startup_mark)
    item.commandPage = int(exchange.command_page)
    item.commandOffset = int(exchange.command_offset)
    for entry, page in zip(item.init("pages", len(exchange.pages)), exchange.pages, strict=True):
        entry.index, entry.size = int(page.index), int(page.size)
    item.attachOrder = read_numbers(exchange.attach_order)
    for entry, call in zip(item.init("calls", len(exchange.calls)), exchange.calls, strict=True):
        entry.name = call.name
        entry.command = int(call.command)
        entry.phases = int(call.phases)
        entry.inputs = call.inputs.tobytes()
        entry.outputs = call.outputs.tobytes()
        entry.invocations = int(call.invocations)
        entry.inputBatchEnds = read_numbers(call.input_batch_ends)
        entry.outputBatchEnds = read_numbers(call.output_batch_ends)


def _put_debug(item: Any, package: Package) -> None:
    item.digest = debug_digest(package)
    for entry, symbol in zip(item.init("symbols", len(package.symbols)), package.symbols, strict=True):
        entry.name, entry.address = symbol.name, int(symbol.address)
    for entry, region in zip(item.init("regions", len(package.regions)), package.regions, strict=True):
        entry.physicalTile, entry.address = int(region.physical_tile), int(region.address)
        entry.size, entry.name = int(region.size), region.name
    if len(package.lines.rows):
        put_lines(item, package.lines)
    debug = package.debug
    if debug is None:
        return
    item.hasText = True
    for field, text in (("graph", debug.graph), ("layouts", debug.layouts)):
        data = text.encode()
        put_blob(item.init(field), data)
    names: dict[str, int] = {}
    indices = [names.setdefault(name, len(names)) for live in debug.live for name in live]
    item.liveNames = list(names)
    item.liveEnds = np.cumsum([len(live) for live in debug.live], dtype=_U32).tobytes()
    item.liveIndices = np.array(indices, _U32).tobytes()
    if debug.program is not None:
        item.hasProgram = True
        put_program(item.init("program"), debug.program)


# --- reading ---


def from_message(data: bytes, words: int) -> tuple[Package, bytes, bytes]:
    """The package in a message of `words` words whose framing is sound, its digest and its debug digest.

    Version and target are looked at first. The result has the right types and no more: the caller validates.
    Raises PackageError.
    """
    return _guarded(lambda: _read(data, words))


def _guarded(read: Callable[[], tuple[Package, bytes, bytes]]) -> tuple[Package, bytes, bytes]:
    try:
        return read()
    except capnp.KjException as error:
        raise PackageError("damaged message: a pointer or a list in it is not well formed") from error
    except UnicodeDecodeError as error:
        raise PackageError(f"damaged message: a text is not UTF-8 at its byte {error.start}") from error
    except (ValueError, OverflowError, MemoryError) as error:
        raise PackageError(f"damaged message: {error}") from error


def _read(data: bytes, words: int) -> tuple[Package, bytes, bytes]:
    limit = TRAVERSAL_FACTOR * words
    with _schema().Package.from_bytes(data, traversal_limit_in_words=limit, nesting_limit=NESTING) as root:
        _check_identity(root)
        budget = Budget()
        steps = [ProfileStep(str(item.name), str(item.kind)) for item in root.steps]
        tables = [
            read_table(table, MARK, f"mark table {index}") for index, table in enumerate(root.markTables)
        ]
        tiles = read_table(root.tiles, TILE_IMAGE, "tiles")
        section = root.debug
        symbols = [Symbol(str(item.name), int(item.address)) for item in section.symbols]
        regions = [
            Region(int(item.physicalTile), int(item.address), int(item.size), str(item.name))
            for item in section.regions
        ]
        package = Package(
            compiler_version=str(root.compilerVersion),
            blobs=[get_blob(item, budget, f"blob {index}") for index, item in enumerate(root.blobs)],
            images=[_get_image(item) for item in root.images],
            tiles=[TileImage(tile, image) for tile, image in tiles.tolist()],
            target=TARGET,
            inputs=[get_binding(item) for item in root.inputs],
            outputs=[get_binding(item) for item in root.outputs],
            weights=[get_binding(item) for item in root.weights],
            host_exchange=_get_exchange(root.hostExchange),
            entry_points=[
                EntryPoint(str(item.name), int(item.command), int(item.externalSyncs))
                for item in root.entryPoints
            ],
            device_config_writes=[
                ConfigWrite(int(item.offset), int(item.value)) for item in root.configWrites
            ],
            profile=ProfilePlan(steps, tables),
            symbols=symbols,
            regions=regions,
            lines=get_lines(section, budget),
            provisional=read_table(root.provisional, PROVISIONAL_WORD, "provisional words"),
            debug=_get_debug(section, budget),
        )
        return package, bytes(root.digest), bytes(section.digest)


def _check_identity(root: Any) -> None:
    version = int(root.version)
    if version != FORMAT_VERSION:
        raise PackageError(
            f"not a package of this format version: it says {version}, this reader knows {FORMAT_VERSION}",
            hint="compile the model again with this version",
        )
    target = str(root.target)
    if target != TARGET:
        raise PackageError(f"made for target {target[:40]!r}, not for {TARGET!r}")
    memory = int(root.tileMemoryBase), int(root.tileMemorySize)
    if memory != (TILE_BASE, TILE_BYTES):
        raise PackageError(
            f"made for tile memory of {memory[1]:#x} bytes at {memory[0]:#x}, "
            f"not {TILE_BYTES:#x} at {TILE_BASE:#x}"
        )


def _get_image(item: Any) -> Image:
    segments = [
        Segment(
            address=int(part.address),
            memory_size=int(part.memorySize),
            blob=read_index(int(part.blob)),
            blob_offset=int(part.blobOffset),
            file_size=int(part.fileSize),
            flags=int(part.flags),
        )
        for part in item.segments
    ]
    return Image(
        entry_point=int(item.entryPoint),
        command_address=int(item.commandAddress),
        diagnostic_address=int(item.diagnosticAddress),
        segments=segments,
        mark_table=read_index(int(item.markTable)),
    )


def _get_exchange(item: Any) -> HostExchange:
    return HostExchange(
        startup_mark=int(item.startupMark),
        command_page=int(item.commandPage),
        command_offset=int(item.commandOffset),
        pages=[HostPage(int(page.index), int(page.size)) for page in item.pages],
        attach_order=read_numbers(item.attachOrder),
        calls=[_get_call(call) for call in item.calls],
    )


def _get_call(item: Any) -> HostCall:
    name = str(item.name)
    return HostCall(
        name=name,
        command=int(item.command),
        phases=int(item.phases),
        inputs=read_table(item.inputs, HOST_SLICE, f"inputs of call {name[:80]!r}"),
        outputs=read_table(item.outputs, HOST_SLICE, f"outputs of call {name[:80]!r}"),
        invocations=int(item.invocations),
        input_batch_ends=read_numbers(item.inputBatchEnds),
        output_batch_ends=read_numbers(item.outputBatchEnds),
    )


def _get_debug(item: Any, budget: Budget) -> Debug | None:
    if not item.hasText:
        return None
    names = [str(name) for name in item.liveNames]
    ends = read_rows(bytes(item.liveEnds), _U32, "ends of the live tensors").tolist()
    indices = read_rows(bytes(item.liveIndices), _U32, "live tensors").tolist()
    if ends != sorted(ends) or (ends[-1] if ends else 0) != len(indices):
        raise PackageError("ends of the live tensors do not cut the list of live tensors into steps")
    if indices and max(indices) >= len(names):
        raise PackageError(f"live tensor {max(indices)} of only {len(names)}")
    live = [[names[i] for i in indices[begin:end]] for begin, end in zip([0, *ends], ends, strict=False)]
    return Debug(
        graph=get_blob(item.graph, budget, "graph text").decode(),
        layouts=get_blob(item.layouts, budget, "layouts text").decode(),
        live=live,
        program=get_program(item.program, budget) if item.hasProgram else None,
    )
