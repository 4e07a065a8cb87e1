"""Build the native code of scheduler and simulator ahead of its first use.

`python -m tilewright.prepare` compiles and runs a small network that needs all of it. Without this, the first
compile and the first run on a computer build what they need, once, which takes about a minute together.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

_SELDOM_NEEDED = (
    "tilewright.ipu21.fabric.colouring",
    "tilewright.ipu21.place.first_fit",
    "tilewright.ipu21.place.offset_search",
)
"""Modules of native code that the network below does not reach; importing them builds it."""


def prepare() -> None:
    """Compile and run a network with multicasts, partial sums and element-wise steps, simulated."""
    import tilewright as tw

    for module in _SELDOM_NEEDED:
        import_module(module)
    w, v = (np.full(shape, 1 / 64, np.float32) for shape in ((64, 64), (64, 16)))
    bias = np.zeros(64, np.float32)
    graph = tw.trace(lambda x: {"y": tw.ops.gelu(x @ w + bias) @ v}, x=tw.TensorType((360, 64)))
    package = tw.compile(graph, tiles=64)
    x = np.zeros((360, 64), np.float32)
    with tw.open_device("sim") as device, tw.Session(device, package) as session:
        session.run({"x": x})


if __name__ == "__main__":
    prepare()
