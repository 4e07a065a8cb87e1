"""One exchange phase as a page: data and drawing in one file, nothing to fetch."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files

import numpy as np

from tilewright.ipu21.exchange.flows import Traffic
from tilewright.ipu21.machine.topology import to_logical

TEMPLATE = "exchange_page.html"


def phase_page(name: str, origin: str, traffic: Traffic) -> str:
    """The page of a phase.

    Args:
        name: of the phase. origin: what it comes from, for the heading. Both may be any text.
    """
    tiles = np.array(traffic.tiles, np.int64)
    flows = traffic.flows
    place = {
        "source": np.searchsorted(tiles, flows["source"]),
        "destination": np.searchsorted(tiles, flows["destination"]),
    }
    data = {
        "tiles": traffic.tiles,
        "logical": to_logical(tiles).tolist(),
        "ends": traffic.ends,
        "length": traffic.horizon,
        "words": int(flows["words"].sum(dtype=np.int64)),
        # Rows of numbers, without names: a phase of all tiles has tens of thousands of them.
        "sends": [
            [index, *send] for index, sends in enumerate(traffic.sends) for send in sends
        ],  # tile, event, items, bytes per item, address
        "flows": np.stack(
            [
                place["source"],
                place["destination"],
                *(
                    flows[key].astype(np.int64)
                    for key in ("send", "store", "items", "words", "read", "write")
                ),
            ],
            axis=1,
        ).tolist(),
    }
    # Inside a script element only `<` could end it; as an escape it is the same JSON.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    values = {"NAME": escape(name), "ORIGIN": escape(origin), "DATA": text}
    template = files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8")
    # In one pass, so that a name that looks like a mark stays a name.
    return re.sub(r"@(NAME|ORIGIN|DATA)@", lambda mark: values[mark[1]], template)
