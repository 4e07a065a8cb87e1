"""Build the native code of compiler and simulator ahead of its first use.

`python -m tilewright.prepare` does; without it, the first compile and the first run on a computer build what
they need, once, which takes about a minute together.
"""

from __future__ import annotations


def prepare() -> None:
    """Make what this computer has not got yet."""
    from .ipu21.compile import prepare as prepare_compiler
    from .ipu21.simulator.compile import engine

    prepare_compiler()
    engine()


if __name__ == "__main__":
    prepare()
