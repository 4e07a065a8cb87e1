"""One tile on its own: assemble text, place operands, run a function or a vertex, read memory back.

program = TileProgram.from_source(text)
bench = TileBench(program)
x = bench.put("x", numpy_array)
y = bench.reserve("y", "f32", 64)
result = bench.call("f", {"m2": y, "m3": x, "m4": 64})
result.array("y"), result.cycles
"""

from tilewright.ipu21.simulator.checks import Checks

from .bench import RunResult, TileBench
from .memory import Buffer, VertexField
from .program import TileProgram

__all__ = ["Buffer", "Checks", "RunResult", "TileBench", "TileProgram", "VertexField"]
