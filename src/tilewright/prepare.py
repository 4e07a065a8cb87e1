"""Build the native code of scheduler and simulator ahead of its first use.

`python -m tilewright.prepare` compiles and runs a small network that needs all of it. Without this, the first
compile and the first run on a computer build what they need, once, which takes about a minute together.
"""

from __future__ import annotations

import numpy as np


def prepare() -> None:
    """Compile and run a network with multicasts, partial sums and element-wise steps, simulated."""
    import tilewright as tw

    w, v = (np.full(shape, 1 / 64, np.float32) for shape in ((64, 64), (64, 16)))
    bias = np.zeros(64, np.float32)
    graph = tw.trace(lambda x: {"y": tw.ops.gelu(x @ w + bias) @ v}, x=tw.TensorType((360, 64)))
    package = tw.compile(graph, tiles=64)
    x = np.zeros((360, 64), np.float32)
    with tw.open_device("sim") as device, tw.Session(device, package) as session:
        session.run({"x": x})


if __name__ == "__main__":
    prepare()
