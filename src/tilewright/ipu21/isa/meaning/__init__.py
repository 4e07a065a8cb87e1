"""What instructions do: one small value function per instruction, beside its siblings.

Every function here is ordinary Python on plain numbers, so that a test or a reader can call it directly; the
simulator compiles the same functions. Conventions:

- A register word is an `int` in 0..2**32-1; a half is an `int` in 0..65535; a 64-bit register pair is two
  words, low word first.
- A floating-point function returns its result word in bits 31:0 and the IEEE exception flags it raises in
  bits 34:32, in the order of $FP_STS: INV, DIV0, OFLO (`bits.INVALID`, `bits.DIVIDE`, `bits.OVERFLOW`).
- `control` is the worker's $FP_CTL, `draw` 16 random bits for stochastic rounding (unused unless ESR is set).

`registry` maps each form of the instruction table to its function and says how operands reach it. Memory,
control and exchange instructions have no value function; the simulator executes them itself.
"""
