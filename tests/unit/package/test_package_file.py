"""Files: round trip, the same bytes everywhere, and no damage that goes unnoticed."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from package_sample import make_package

from tilewright.errors import PackageError, UsageError
from tilewright.package import blobs as blob_module
from tilewright.package import (
    load_package,
    package_digest,
    read_package,
    save_package,
    write_package,
)
from tilewright.package.blobs import RAW, ZSTD, BlobStore, Budget, compress, expand
from tilewright.package.framing import check_framing
from tilewright.package.limits import FREE_EXPANSION_BYTES, MAX_BLOB_BYTES, MAX_RATIO
from tilewright.package.records import CodeLines, Debug, Package

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def data() -> bytes:
    return write_package(make_package())


def same(one: object, other: object) -> bool:
    """Structural equality that also looks into arrays."""
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
        )
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.tolist() == other.tolist()
    if isinstance(one, list | tuple):
        assert isinstance(other, list | tuple)
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_round_trip_keeps_every_field(data: bytes) -> None:
    assert same(read_package(data), make_package())
    assert write_package(read_package(data)) == data


def test_round_trip_without_options() -> None:
    package = make_package()
    package.debug = None
    package.symbols, package.regions, package.lines = [], [], CodeLines()
    assert same(read_package(write_package(package)), package)
    package.debug = Debug()
    assert same(read_package(write_package(package)), package)


def test_source_lines_are_found_by_address() -> None:
    lines = make_package().lines
    assert lines.find(0x4C014) == lines.find(0x4C017) == ("start.S", 7)
    assert lines.find(0x4C018) == ("gemm.S", 3)
    assert lines.find(0x4C010) is lines.find(0x4C01C) is lines.find(0xE0000) is None


def test_numpy_integers_are_accepted(data: bytes) -> None:
    package = make_package()
    for image in package.images:
        for segment in image.segments:
            for field in dataclasses.fields(segment):
                setattr(segment, field.name, np.int64(getattr(segment, field.name)))
    assert write_package(package) == data


def test_same_bytes_in_other_processes(data: bytes) -> None:
    script = (
        "import hashlib, package_sample, tilewright.package as p;"
        "print(hashlib.sha256(p.write_package(package_sample.make_package())).hexdigest())"
    )
    for seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == hashlib.sha256(data).hexdigest()


def test_digest_is_about_meaning_only(data: bytes) -> None:
    digest = package_digest(make_package())
    stripped = make_package()
    stripped.debug, stripped.symbols, stripped.regions = None, [], []
    assert package_digest(stripped) == digest == package_digest(read_package(data))

    def changed(change: object) -> str:
        package = make_package()
        assert callable(change)
        change(package)
        return package_digest(package)

    changes = [
        lambda p: setattr(p, "compiler_version", "test 2"),
        lambda p: setattr(p.images[1].segments[1], "flags", 1),
        lambda p: setattr(p.tiles[7], "image", 0),
        lambda p: setattr(p.inputs[0], "name", "z"),
        lambda p: p.inputs[0].slices["address"].__setitem__(0, 0x70008),
        lambda p: setattr(p.host_exchange.calls[0], "command", 9),
        lambda p: setattr(p.device_config_writes[0], "value", 2),
        lambda p: setattr(p.profile.steps[1], "kind", "copy"),
        lambda p: p.profile.mark_tables[0]["step"].__setitem__(1, 0),
        lambda p: p.blobs.__setitem__(0, p.blobs[0][:-1] + b"!"),
        lambda p: setattr(p, "provisional", p.provisional[:0]),
    ]
    digests = {changed(change) for change in changes}
    assert len(digests) == len(changes) and digest not in digests


def test_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "sample.ipuexe"
    save_package(make_package(), path)
    assert path.read_bytes() == data
    assert same(load_package(path), make_package())
    path.write_bytes(data[:-8])
    with pytest.raises(PackageError, match=r"sample\.ipuexe: truncated"):
        load_package(path)
    with pytest.raises(UsageError, match="cannot read"):
        load_package(tmp_path / "missing.ipuexe")


def test_invalid_package_leaves_no_file(tmp_path: Path) -> None:
    package = make_package()
    package.tiles.pop()
    with pytest.raises(PackageError):
        save_package(package, tmp_path / "x.ipuexe")
    assert not list(tmp_path.iterdir())


# --- damage ---


def error_or_equal(damaged: bytes, good: bytes) -> bool:
    """True for an error. Any other exception, or a package that differs, fails the test."""
    try:
        package = read_package(damaged)
    except PackageError:
        return True
    assert write_package(package) == good
    return False


def test_every_prefix_is_refused(data: bytes) -> None:
    for length in [*range(64), *range(64, len(data), 101), *range(len(data) - 16, len(data))]:
        with pytest.raises(PackageError):
            read_package(data[:length])


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_flipped_bytes(data: bytes, mask: int) -> None:
    positions = [*range(512), *range(512 + mask % 13, len(data), 61)]
    errors = 0
    for position in positions:
        damaged = bytearray(data)
        damaged[position] ^= mask
        errors += error_or_equal(bytes(damaged), data)
    # Padding between objects carries nothing; everything else is under a digest.
    assert errors > 0.9 * len(positions)


@pytest.mark.parametrize("value", [2**32 - 1, 2**32, 2**63, 2**64 - 1, 0])
def test_extreme_words(data: bytes, value: int) -> None:
    for position in [*range(0, 1024, 8), *range(1024, len(data) - 8, 136)]:
        damaged = data[:position] + value.to_bytes(8, "little") + data[position + 8 :]
        error_or_equal(damaged, data)


def test_trailing_bytes_are_refused(data: bytes) -> None:
    for extra in (b"\0", b"\0" * 8, data):
        with pytest.raises(PackageError, match="follow the end of the message"):
            read_package(data + extra)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too few"),
        (b"\x7fELF" + bytes(60), "an ELF file"),
        (b"IPUIMG1\0" + bytes(60), "IPUIMG"),
        (b"\xff\xff\xff\xff" + bytes(60), "4294967296 message segments"),
        (b"\x93NUMPY\x01\x00" + bytes(60), "message segments"),
        (b"\x63\0\0\0" + bytes(12), "segment table"),
        (bytes(16), "first message segment is empty|follow the end"),
        (bytes(8), "too few"),
    ],
)
def test_other_files_are_named(content: bytes, message: str) -> None:
    with pytest.raises(PackageError, match=message):
        read_package(content, name="other")


def test_framing_counts_words(data: bytes) -> None:
    assert check_framing(data) * 8 == len(data)


def test_version_and_target_come_first(data: bytes) -> None:
    package = make_package()
    for field, value, message in (
        ("version", 2, "it says 2, this reader knows 1"),
        ("target", "ipu1", "target 'ipu1'"),
        ("tileMemorySize", 1, "tile memory of 0x1 bytes"),
    ):
        damaged = _message_with(package, **{field: value})
        # The rest of the message is empty, so any other check would have complained first.
        with pytest.raises(PackageError, match=message):
            read_package(damaged)
    with pytest.raises(PackageError, match="0 tiles"):
        read_package(_message_with(package))


def _message_with(package: Package, **fields: object) -> bytes:
    from tilewright.package import wire

    message = wire._schema().Package.new_message(
        version=1,
        target=package.target,
        tileMemoryBase=package.tile_memory_base,
        tileMemorySize=package.tile_memory_size,
    )
    for name, value in fields.items():
        setattr(message, name, value)
    return bytes(message.to_bytes())


def test_change_that_keeps_all_rules_is_seen(data: bytes) -> None:
    """Swap the compiler's name for another of equal length: only the digest can tell."""
    assert data.count(b"test 1") == 1
    with pytest.raises(PackageError, match="does not match the digest"):
        read_package(data.replace(b"test 1", b"test 2"))
    assert data.count(b"graph text") == 1
    with pytest.raises(PackageError, match="graph text: content does not match its SHA-256"):
        read_package(data.replace(b"graph text", b"graph Text"))
    with pytest.raises(PackageError, match="debug section does not match"):
        read_package(data.replace(b"start\0", b"Start\0"))


# --- blobs ---


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def test_compression_only_when_smaller() -> None:
    noise = np.random.default_rng(1).bytes(4096)
    assert compress(noise) == (RAW, noise)
    codec, stored = compress(bytes(4096))
    assert codec == ZSTD and len(stored) < 4096
    assert expand(codec, stored, 4096, digest_of(bytes(4096)), Budget(), "blob") == bytes(4096)


def test_writer_stays_within_the_readers_ratio() -> None:
    zeros = bytes(FREE_EXPANSION_BYTES * 2)
    assert compress(zeros)[0] == RAW
    assert compress(bytes(FREE_EXPANSION_BYTES))[0] == ZSTD


def test_bomb_is_refused_before_it_expands(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 24))

    def never(*_: object) -> bytes:
        raise AssertionError("expanded")

    monkeypatch.setattr(blob_module, "_decompress", never)
    with pytest.raises(PackageError, match=f"more than {MAX_RATIO} to 1"):
        expand(ZSTD, bomb, 1 << 24, bytes(32), Budget(), "blob 0")
    with pytest.raises(PackageError, match="over the limit"):
        expand(ZSTD, bomb, MAX_BLOB_BYTES + 1, bytes(32), Budget(), "blob 0")
    with pytest.raises(PackageError, match="over the limit"):
        expand(ZSTD, bomb, 2**64 - 1, bytes(32), Budget(), "blob 0")
    with pytest.raises(PackageError, match="exceed the limit"):
        expand(ZSTD, bomb, 1 << 19, bytes(32), Budget(1 << 18), "blob 0")


def test_bomb_that_lies_about_its_size_stops_early() -> None:
    content = bytes(1 << 26)
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(content)
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(PackageError, match="more than the 1000 bytes"):
        expand(ZSTD, bomb, 1000, bytes(32), Budget(), "blob 0")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22


def test_blob_faults() -> None:
    stored = zstandard.ZstdCompressor().compress(b"abc" * 100)
    good = digest_of(b"abc" * 100)
    for codec, data, size, digest, message in (
        (ZSTD, stored, 301, good, "300 bytes instead of the 301"),
        (ZSTD, stored, 299, good, "more than the 299"),
        (ZSTD, stored[:-3], 300, good, "damaged zstd|bytes instead"),
        (ZSTD, b"abc", 3, good, "damaged zstd"),
        (ZSTD, stored, 300, good[:-1], "31 bytes instead of 32"),
        (ZSTD, stored, 300, bytes(32), "does not match its SHA-256"),
        (RAW, b"abc", 4, digest_of(b"abc"), "3 bytes instead of the 4"),
        (2, b"abc", 3, digest_of(b"abc"), "unknown codec 2"),
    ):
        with pytest.raises(PackageError, match=f"blob 5: .*({message})"):
            expand(codec, data, size, digest, Budget(), "blob 5")


def test_store_keeps_equal_bytes_once() -> None:
    store = BlobStore()
    assert [store.add(b"a"), store.add(b"b"), store.add(bytes(bytearray(b"a"))), store.add(b"")] == [
        0,
        1,
        0,
        -1,
    ]
    assert store.blobs == [b"a", b"b"]
