"""Kept packages: found again only for the same inputs, never half, never damaged, never too many."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import cache as cache_module
from tilewright.compiler.cache import PackageCache, compile_cached, compile_key, package_cache, source_digest
from tilewright.package import write_package
from tilewright.package.records import EXECUTE, READ, WRITE, Image, Package, Segment, TileImage

pytestmark = pytest.mark.unit

KEY = "0" * 64


def package(version: str = "test", padding: int = 0) -> Package:
    """The least that is a package; `padding` adds bytes that do not compress."""
    blob = b"\x00\x00\xe0\x19" * 6
    image = Image(0x4C014, 0, 0x58000, [
        Segment(0x4C010, 24, 0, 0, 24, READ | EXECUTE), Segment(0x58000, 32, -1, 0, 0, READ | WRITE),
    ], -1)  # fmt: skip
    blobs = [blob]
    if padding:
        blobs.append(np.random.default_rng(0).bytes(padding))
        image.segments.append(Segment(0x60000, padding, 1, 0, padding, READ))
    return Package(version, blobs, [image], [TileImage(tile, 0) for tile in range(1472)])


def graph(weight: float = 1.0, name: str = "y") -> tw.Graph:
    w = np.full((16, 16), weight, np.float32)
    return tw.trace(lambda x: {name: x @ w}, x=tw.TensorType((4, 16)))


@pytest.fixture
def store(tmp_path: Path) -> PackageCache:
    return PackageCache(tmp_path / "packages")


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The arguments of every compilation, which here gives a package named after its tiles."""
    calls: list[dict[str, object]] = []

    def compile_graph(graph: tw.Graph, **arguments: object) -> Package:
        calls.append(arguments)
        return package(f"for {arguments['tiles']} tiles")

    monkeypatch.setattr(cache_module, "compile_graph", compile_graph)
    return calls


def test_the_second_time_nothing_is_compiled(store: PackageCache, compiles: list[object]) -> None:
    first = compile_cached(graph(), cache=store, tiles=8)
    second = compile_cached(graph(), cache=store, tiles=8)
    assert (first.cached, second.cached, len(compiles)) == (False, True, 1)
    assert first.key == second.key
    assert first.file_bytes() == second.file_bytes() == write_package(package("for 8 tiles"))
    assert write_package(second.package) == second.file_bytes()


def test_whatever_matters_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        compile_key(graph(), {"tiles": 8}),
        compile_key(graph(1.5), {"tiles": 8}),
        compile_key(graph(name="z"), {"tiles": 8}),
        compile_key(graph(), {"tiles": 9}),
        compile_key(graph(), {"tiles": 8, "precision": "high"}),
    ]
    monkeypatch.setattr(cache_module, "source_digest", lambda: "another compiler")
    keys.append(compile_key(graph(), {"tiles": 8}))
    assert len(set(keys)) == len(keys)


def test_options_reach_the_compiler(store: PackageCache, compiles: list[dict[str, object]]) -> None:
    compile_cached(graph(), cache=store, tiles=8, options={"precision": "high"})
    assert compiles == [{"tiles": 8, "check": False, "progress": None, "precision": "high"}]


def test_a_check_is_never_skipped(store: PackageCache, compiles: list[dict[str, object]]) -> None:
    compile_cached(graph(), cache=store, tiles=8)
    assert not compile_cached(graph(), cache=store, tiles=8, check=True).cached
    assert compiles[1]["check"] is True
    assert compile_cached(graph(), cache=store, tiles=8).cached


def test_without_a_cache_nothing_is_kept(compiles: list[object]) -> None:
    results = [compile_cached(graph(), cache=None, tiles=8) for _ in range(2)]
    assert [result.cached for result in results] == [False, False]
    assert results[0].file_bytes() == write_package(package("for 8 tiles"))


def test_every_damage_is_noticed_and_repaired(store: PackageCache, compiles: list[object]) -> None:
    kept = compile_cached(graph(), cache=store, tiles=8)
    (path,) = store.folder.iterdir()
    whole = path.read_bytes()
    other = write_package(package("something else"))
    damages = [b"", whole[:40], whole[:-1], whole + b"\0", whole[:-9] + b"x" + whole[-8:], other]
    damages += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 35, len(whole) // 2)]
    for number, damaged in enumerate(damages, 1):
        path.write_bytes(damaged)
        again = compile_cached(graph(), cache=store, tiles=8)
        assert not again.cached and len(compiles) == 1 + number
        assert path.read_bytes() == whole
        assert compile_cached(graph(), cache=store, tiles=8).file_bytes() == kept.file_bytes()


def test_a_folder_instead_of_an_entry_is_a_miss(store: PackageCache, compiles: list[object]) -> None:
    kept = compile_cached(graph(), cache=store, tiles=8)
    (path,) = store.folder.iterdir()
    path.unlink()
    path.mkdir()
    assert not compile_cached(graph(), cache=store, tiles=8).cached
    assert kept.key == compile_key(graph(), {"tiles": 8})


def test_where_nothing_can_be_written_all_still_works(tmp_path: Path, compiles: list[object]) -> None:
    (tmp_path / "file").touch()
    store = PackageCache(tmp_path / "file" / "packages")
    assert not compile_cached(graph(), cache=store, tiles=8).cached
    assert store.entries() == [] and store.clear() == 0


def test_an_entry_that_may_only_be_read_is_used(
    store: PackageCache, compiles: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: object) -> None:
        raise PermissionError

    compile_cached(graph(), cache=store, tiles=8)
    monkeypatch.setattr(os, "utime", refused)
    assert compile_cached(graph(), cache=store, tiles=8).cached


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    data = [write_package(package(str(number), padding=10_000)) for number in range(4)]
    keys = [str(number) * 64 for number in range(4)]
    store = PackageCache(tmp_path, limit=3 * len(data[0]) + 1000)
    for number in range(3):
        store.put(keys[number], data[number])
        os.utime(tmp_path / f"{keys[number]}.entry", (1000 + number, 1000 + number))
    assert store.get(keys[0]) is not None  # used now, so that the second is the oldest
    store.put(keys[3], data[3])
    assert {entry.key for entry in store.entries()} == {keys[0], keys[2], keys[3]}
    assert store.entries()[-1].key == keys[2]
    PackageCache(tmp_path, limit=100).put(keys[1], data[1])  # larger than the whole cache
    assert store.get(keys[1]) is None and len(store.entries()) == 3


def test_what_a_dead_writer_left_goes(store: PackageCache) -> None:
    store.put(KEY, write_package(package()))
    old, young = (store.folder / f".{KEY}.entry.{name}" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    store.put(KEY, write_package(package()))
    assert not old.exists() and young.exists()
    assert [entry.key for entry in store.entries()] == [KEY]
    assert store.clear() == 1
    assert list(store.folder.iterdir()) == []


def _use(folder: Path, seed: int, found: multiprocessing.queues.Queue[str]) -> None:
    """Put and get in a cache so small that entries keep going; tell what was ever read."""
    data = {str(n) * 64: write_package(package(str(n), padding=20_000 + n)) for n in range(4)}
    store = PackageCache(folder, limit=50_000)
    generator = np.random.default_rng(seed)
    for _ in range(60):
        key = str(generator.integers(4)) * 64
        if generator.random() < 0.5:
            store.put(key, data[key])
        kept = store.get(key)
        if kept is not None and kept.file_bytes() != data[key]:
            found.put("wrong")
            return
    found.put("right")


def test_processes_share_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    processes = [context.Process(target=_use, args=(tmp_path, seed, found)) for seed in range(3)]
    for process in processes:
        process.start()
    assert [found.get(timeout=60) for _ in processes] == ["right"] * 3
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


def test_the_folders_left_out_are_those_that_the_import_contracts_keep_away() -> None:
    import tomllib

    settings = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]

    def forbidden(source: str) -> set[str]:
        return {
            name
            for c in contracts
            if source in c.get("source_modules", ())
            for name in c["forbidden_modules"]
        }

    for folder in cache_module.NOT_THE_COMPILER:
        assert f"tilewright.{folder.replace('/', '.')}" in forbidden("tilewright.compiler")


def test_any_source_of_the_compiler_changes_the_digest(tmp_path: Path) -> None:
    def digest_with(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        source_digest.cache_clear()
        return source_digest(tmp_path)

    digests = [digest_with("ops.py", "1"), digest_with("ops.py", "2"), digest_with("ipu21/plan/x.json", "2")]
    assert len(set(digests)) == 3
    for name in ("cli/main.py", "ipu21/simulator/chip.py", "runtime/session.py", "graph/__pycache__/x.pyc"):
        assert digest_with(name, "3") == digests[-1]
    source_digest.cache_clear()


def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def folder() -> Path:
        found = package_cache()
        assert found is not None
        return found.folder

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert folder() == tmp_path / "cache" / "tilewright" / "packages"
    for value in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert folder() == tmp_path / "home" / ".cache" / "tilewright" / "packages"
