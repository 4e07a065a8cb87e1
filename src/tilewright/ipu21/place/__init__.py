"""SRAM addresses for the buffers of one tile class, under lifetimes, memory classes and element rules."""
