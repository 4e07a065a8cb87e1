"""An order of multicasts by gangs: tiles that want what each of them holds, or receivers of many tiles.

Such phases need no search. The messages of a gang go back to back to all its members, senders sorted along
the spine, because a change of sender costs every receiver the difference of the two routes, and that is small
between neighbours. Gangs without a common tile run side by side, the others in layers.

Where every member sends, one of them would always be idle: the sender, which does not want its own message.
So each message leaves twice, in a staircase: first to the members before its sender, while the member before
sends to all behind it, then to those behind. With n members that takes n - 1 turns instead of n.

A 64-bit message may also leave once for each way along the spine. What a receiver writes for 64-bit messages
from both ways never falls on one event then (see `placement.STEADY`), which would make it pause.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..machine import topology
from . import routes
from .messages import Ints, Messages, cumulative, slices
from .orders import scattered
from .transfers import TILE_IDS

_MOST = 4096
"""Gangs above which a phase counts as irregular."""
_SMALL = 30_000
"""Receivers up to which it does not matter that most messages are a gang of their own."""


@dataclass(frozen=True)
class Parts:
    """Messages in the order of placement, some of them in two parts.

    Part i sends `message[i]` to the receivers `receiver[offsets[i]:offsets[i+1]]`.
    """

    message: Ints
    offsets: Ints
    receiver: Ints


def ganged(messages: Messages, *, stairs: bool, ways: bool = False) -> Parts | None:
    """The messages gang by gang, in staircases or not, or None where that is senseless.

    With `ways`, 64-bit messages are divided by the ways to their receivers.

    That is for phases with too many gangs, and for staircases where no gang can have one.
    """
    gang, closed = _gangs(messages)
    count = int(gang.max(initial=-1)) + 1
    if count > _MOST or (2 * count > len(gang) and len(messages.tile) > _SMALL):
        return None
    source, owner = messages.source, messages.owner
    # A wide message takes both lanes of its pair: then pairs count as members.
    wide = messages.wide
    sender = np.where(wide, source & ~2, source)
    member = np.where(messages.wide[owner], messages.tile & ~2, messages.tile)
    rank, senders = _ranks(gang, sender, count)
    place = gang[owner] * TILE_IDS + member
    receiving = np.zeros(count * TILE_IDS, dtype=np.bool_)
    receiving[place] = True
    # The staircase pays if every member sends; a sender that hears itself must send to all at once.
    able = closed & (receiving.reshape(count, -1).sum(axis=1) == senders) & (senders > 2)
    able[gang[owner[messages.tile == source[owner]]]] = False
    if stairs and not able.any():
        return None
    rank_of_message = rank[gang * TILE_IDS + sender]
    back = able[gang[owner]] & (rank[place] < rank_of_message[owner]) & stairs
    # Receivers message by message, those in front of the sender first.
    part = 4 * owner + 2 * ~back
    if ways:
        part += wide[owner] & (routes.direction(source[owner], messages.tile) == topology.EAST)
    by_part = np.argsort(part, kind="stable")
    part = part[by_part]
    heads = np.flatnonzero(np.concatenate([[True], part[1:] != part[:-1]]))
    message = part[heads] >> 2
    size = np.diff(np.append(heads, len(part)))
    turn = 2 * rank_of_message[message] + (part[heads] >> 1 & 1)
    layer = _layers(messages, gang, closed)
    order = np.lexsort((message, part[heads] & 1, gang[message], turn, layer[gang[message]]))
    return Parts(message[order], cumulative(size[order]), by_part[slices(heads[order], size[order])])


def _ranks(gang: Ints, sender: Ints, count: int) -> tuple[NDArray[np.int32], Ints]:
    """Places of the senders of each gang along the spine, at gang * TILE_IDS + tile, and how many there are.

    Tiles that do not send have a high place.
    """
    column = np.arange(TILE_IDS) >> 2 & 15
    along = np.where(column < 8, column, 23 - column) * TILE_IDS + np.arange(TILE_IDS)
    known = np.unique(gang * (32 * TILE_IDS) + along[sender])
    of, tile = known // (32 * TILE_IDS), known % TILE_IDS
    senders = np.bincount(of, minlength=count)
    ranks = np.full(count * TILE_IDS, 1 << 20, dtype=np.int32)
    ranks[of * TILE_IDS + tile] = np.arange(len(known)) - cumulative(senders)[of]
    return ranks, senders


def _gangs(messages: Messages) -> tuple[Ints, NDArray[np.bool_]]:
    """Gang of each message, and of each gang whether its senders are members too.

    A gang is a set of tiles: sender and receivers if others of these send to the rest, else receivers only.
    Sets are told apart by the sum of fixed pseudo-random numbers of their tiles.
    """
    mixed = scattered(2 * TILE_IDS)
    mixed = mixed[:TILE_IDS] << 20 ^ mixed[TILE_IDS:]
    owner, wide = messages.owner, messages.wide
    member = np.where(wide[owner], messages.tile & ~2, messages.tile)
    sender = np.where(wide, messages.source & ~2, messages.source)
    heard = np.add.reduceat(mixed[member], messages.offsets[:-1])
    own = np.zeros(len(sender), dtype=np.bool_)
    own[owner[member == sender[owner]]] = True
    everyone = heard + np.where(own, 0, mixed[sender] * np.where(wide, 2, 1))
    _, whole = np.unique(2 * everyone + wide, return_inverse=True)
    several = np.bincount(np.unique(whole * TILE_IDS + sender) // TILE_IDS) > 1
    shared = several[whole]
    _, gang = np.unique(np.where(shared, everyone, heard) * 4 + 2 * wide + shared, return_inverse=True)
    closed = np.zeros(int(gang.max(initial=-1)) + 1, dtype=np.bool_)
    closed[gang[shared]] = True
    return gang.astype(np.int64), closed


def _layers(messages: Messages, gang: Ints, closed: NDArray[np.bool_]) -> Ints:
    """A layer for each gang, so that gangs of one layer have no tile in common; large gangs come first."""
    load = np.bincount(gang, messages.items)
    _, some = np.unique(gang, return_index=True)
    taken: list[NDArray[np.bool_]] = []
    result = np.zeros(len(load), dtype=np.int64)
    for index in np.argsort(-load, kind="stable").tolist():
        message = some[index]
        tiles = messages.tile[messages.offsets[message] : messages.offsets[message + 1]]
        if closed[index]:
            source = messages.source[message]
            tiles = np.append(tiles, [source, source ^ 2] if messages.wide[message] else [source])
        layer = next((at for at, held in enumerate(taken) if not held[tiles].any()), len(taken))
        if layer == len(taken):
            taken.append(np.zeros(TILE_IDS, dtype=np.bool_))
        taken[layer][tiles] = True
        result[index] = layer
    return result
