"""A small network: traced, compiled, run on the simulated chip, compared with the same function on arrays.

python examples/quickstart.py
tilewright compile examples/quickstart.py:network -o network.ipuexe --tiles 16
"""

import numpy as np

import tilewright as tw
from tilewright import ops

generator = np.random.default_rng(0)
w0 = generator.standard_normal((64, 96)).astype(np.float32) / 8
b0 = generator.standard_normal(96).astype(np.float32)
w1 = generator.standard_normal((96, 10)).astype(np.float32) / 10


@tw.model(x=tw.TensorType((32, 64)))
def network(x):
    """One hidden layer. Called on arrays, this computes in float32 with NumPy."""
    return {"y": ops.gelu(x @ w0 + b0) @ w1}


def main() -> None:
    """Trace, compile, run, compare."""
    package = tw.compile(network, tiles=16)
    x = generator.standard_normal((32, 64)).astype(np.float32)
    with tw.open_device("sim") as device, tw.Session(device, package) as session:
        y = session.run({"x": x})["y"]
        print(f"{session.last_run.cycles:,} simulated device cycles")
    error = np.max(np.abs(y - network(x)["y"]))
    print(f"largest difference from float32: {error:.4f}, of values up to {np.max(np.abs(y)):.2f}")


if __name__ == "__main__":
    main()
