"""What rows deliver comes back as transfers; files of transfers are read whole or refused."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.errors import TilewrightError, UsageError
from tilewright.ipu21.exchange.flows import follow
from tilewright.ipu21.exchange.saved import MEMBERS, load_transfers, save_transfers, transfers_of
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.transfers import DESTINATION, TRANSFER
from tilewright.ipu21.machine import topology
from tilewright.ipu21.selftest.random_trials import random_trial
from tilewright.ipu21.selftest.trial import Exchange

pytestmark = pytest.mark.unit


def phase(seed: int, tiles: int = 5, step: int = 0) -> tuple[NDArray[np.void], NDArray[np.void]]:
    exchange = random_trial(seed, tiles).steps[step]
    assert isinstance(exchange, Exchange)
    return exchange.arrays()


def deliveries(transfers: NDArray[np.void], destinations: NDArray[np.void]) -> dict[tuple[int, int], tuple]:
    """(tile, address) of every word -> (source, address)."""
    return {
        (tile, at + 4 * word): (source, address + 4 * word)
        for source, address, words, first, count in transfers.tolist()
        for tile, at in destinations[first : first + count].tolist()
        for word in range(words)
    }


@given(seed=st.integers(0, 30), step=st.sampled_from([0, 2]))
def test_transfers_come_back_from_rows(seed: int, step: int) -> None:
    asked = phase(seed, step=step)
    rows = schedule(*asked).rows
    found = transfers_of(follow(rows))
    assert deliveries(*found) == deliveries(*asked)
    assert int(found[0]["words"].sum()) <= int((asked[0]["words"] * asked[0]["count"]).sum())


def test_messages_that_continue_one_another_are_one_transfer() -> None:
    long = 3 * topology.MAX_MESSAGE_WORDS
    transfers = np.array([(0, 0x80000, long, 0, 2)], TRANSFER)
    destinations = np.array([(4, 0xB0000), (65, 0xA8000)], DESTINATION)
    assert len(schedule(transfers, destinations).starts) > 1
    found = transfers_of(follow(schedule(transfers, destinations).rows))
    assert deliveries(*found) == deliveries(transfers, destinations)
    assert len(found[0]) == 1


def test_flows_leave_and_arrive_as_the_route_says() -> None:
    """Published pair: physical 0 to 53 takes T = -23, so 3 words sent at 135 pass at 113 and land at 165."""
    sender = np.array([0x40A00086, 0x78400001, 0x43A00000], np.uint32)
    receiver = np.array([0x641C0000, 0x64008640, 0x61814000, 0x40A00007, 0x43A00000], np.uint32)
    flow = follow({0: sender, 53: receiver}).flows
    assert flow[["source", "destination", "words", "send", "store", "write"]].tolist() == [
        (0, 53, 3, 135, 165, 0x50000)
    ]


def test_files_come_back_and_have_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        save_transfers(tmp_path / name, *phase(1))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    for loaded, saved in zip(load_transfers(tmp_path / "a.npz"), phase(1), strict=True):
        np.testing.assert_array_equal(loaded, saved)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["transfers"], phase(1)[0])


def test_files_that_numpy_writes_are_read(tmp_path: Path) -> None:
    transfers, destinations = phase(2)
    np.savez(tmp_path / "a.npz", transfers=transfers, destinations=destinations)
    assert len(load_transfers(tmp_path / "a.npz")[0]) == len(transfers)


@given(data=st.data())
def test_damage_is_noticed(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damage") / "a.npz"
    transfers, destinations = phase(1)
    save_transfers(path, transfers, destinations)
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        damaged = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    path.write_bytes(damaged)
    try:
        loaded = load_transfers(path)
    except TilewrightError:
        return
    for one, other in zip(loaded, (transfers, destinations), strict=True):
        np.testing.assert_array_equal(one, other)


def npy(array: NDArray[np.generic], *, pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=pickle)
    return stream.getvalue()


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def header_of(shape: str) -> bytes:
    """A header for TRANSFER records with a shape that the bytes behind it do not have."""
    whole = npy(phase(1)[0])
    text = whole[10 : whole.index(b"\n") + 1].decode()
    begin = text.index("(", text.index("shape"))
    changed = text[:begin] + shape + text[text.index(")", begin) + 1 :]
    changed = changed.rstrip("\n") + "\n"
    return whole[:8] + len(changed).to_bytes(2, "little") + changed.encode() + b"\0" * 64


BAD: dict[str, Callable[[], dict[str, bytes]]] = {
    "other members": lambda: {"x.npy": npy(np.zeros(3))},
    "one member": lambda: {"transfers.npy": npy(phase(1)[0])},
    "other records": lambda: {name: npy(np.zeros(3)) for name in MEMBERS},
    "objects": lambda: {name: npy(np.array([{}], object), pickle=True) for name in MEMBERS},
    "no array": lambda: dict.fromkeys(MEMBERS, b"hello"),
    "two dimensions": lambda: {name: npy(np.zeros((2, 2), dtype)) for name, dtype in MEMBERS.items()},
    "huge shape": lambda: {"transfers.npy": header_of("(10**18,)"), "destinations.npy": npy(phase(1)[1])},
    "large shape": lambda: {
        "transfers.npy": header_of("(1000000000000,)"),
        "destinations.npy": npy(phase(1)[1]),
    },
    "shared destinations": lambda: {
        "transfers.npy": npy(np.array([(0, 0x80000, 1, 0, 2)] * 1000, TRANSFER)),
        "destinations.npy": npy(np.array([(4, 0x80000), (8, 0x80000)], DESTINATION)),
    },
}


@pytest.mark.parametrize("name", BAD)
def test_other_files_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.npz"):
        load_transfers(archive(tmp_path / "a.npz", BAD[name]()))


def test_a_bomb_is_refused_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.ipu21.exchange.saved.MAX_MEMBER_BYTES", 1000)
    members = {name: npy(np.zeros(1000, dtype)) for name, dtype in MEMBERS.items()}
    with pytest.raises(UsageError, match="over the limit"):
        load_transfers(archive(tmp_path / "a.npz", members))
