"""Queues of multicasts by gangs: tiles that want what each of them holds, or receivers of many tiles.

The messages of a gang go back to back to all its members, senders sorted along the spine, because a change of
sender costs every receiver the difference of the two routes, and that is small between neighbours. Every gang
is a queue; `choosing.choose` takes a later message where the first would wait. Queues without a common tile
go side by side, the others in layers.

Where every member sends, one of them would always be idle: the sender, which does not want its own message.
So each message leaves twice, in a staircase: first to the members before its sender, while the member before
sends to all behind it, then to those behind. With n members that takes n - 1 turns instead of n.

A 64-bit message may also leave once for each way along the spine. What a receiver writes for 64-bit messages
from both ways never falls on one event then (see `placement.STEADY`), which would make it pause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """Messages in queues, some of them in two parts.

    Part i sends `message[i]` to the receivers `receiver[offsets[i]:offsets[i+1]]`. Queue i is the parts
    `queues[i]:queues[i+1]`, of layer `layers[i]`.
    """

    message: Ints
    offsets: Ints
    receiver: Ints
    queues: Ints
    layers: Ints

    def by_turns(self) -> Parts:
        """The same parts, layer by layer, in these all first parts of queues before all second ones."""
        size = np.diff(self.queues)
        turn = np.arange(len(self.message)) - np.repeat(self.queues[:-1], size)
        order = np.lexsort((turn, np.repeat(self.layers, size)))
        count = np.diff(self.offsets)[order]
        receiver = self.receiver[slices(self.offsets[order], count)]
        return replace(self, message=self.message[order], offsets=cumulative(count), receiver=receiver)


def ganged(messages: Messages, *, stairs: bool, ways: bool = False) -> Parts | None:
    """The messages gang by gang, in staircases or not, or None where that is senseless.

    With `ways`, 64-bit messages are divided by the ways to their receivers.

    That is for phases with too many gangs, and for staircases where no gang can have one.
    """
    gang, closed, queue = _gangs(messages)
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
    queue = queue[message]
    order = np.lexsort((message, part[heads] & 1, turn, queue))
    queues = cumulative(np.bincount(queue))
    receiver = by_part[slices(heads[order], size[order])]
    offsets = cumulative(size[order])
    layers = _layers(messages.tile[receiver], queues, offsets)
    return Parts(message[order], offsets, receiver, queues, layers)


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


def _gangs(messages: Messages) -> tuple[Ints, NDArray[np.bool_], Ints]:
    """Gang of each message, of each gang whether its senders are members too, and the queue of each message.

    A gang is a set of tiles: sender and receivers if others of these send to the rest, else receivers only.
    Sets are told apart by the sum of fixed pseudo-random numbers of their tiles. What all members of a gang
    hear is in one queue with what else they hear, whoever sends it.
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
    apart = shared & ~own
    _, queue = np.unique(np.where(apart, everyone, heard) * 4 + 2 * wide + apart, return_inverse=True)
    return gang.astype(np.int64), closed, queue.astype(np.int64)


def _layers(tile: Ints, queues: Ints, offsets: Ints) -> Ints:
    """A layer for each queue, so that queues of one layer have no receiver in common.

    Those with most receivers come first: they seldom find all of them free.
    """
    count = len(queues) - 1
    queue = np.repeat(np.arange(count), np.diff(offsets[queues]))
    known = np.unique(queue * TILE_IDS + tile)
    bounds = np.searchsorted(known, np.arange(count + 1) * TILE_IDS)
    tiles = known % TILE_IDS
    taken: list[NDArray[np.bool_]] = []
    result = np.zeros(count, dtype=np.int64)
    for index in np.argsort(-np.diff(bounds), kind="stable").tolist():
        hears = tiles[bounds[index] : bounds[index + 1]]
        layer = next((at for at, held in enumerate(taken) if not held[hears].any()), len(taken))
        if layer == len(taken):
            taken.append(np.zeros(TILE_IDS, dtype=np.bool_))
        taken[layer][hears] = True
        result[index] = layer
    return result
