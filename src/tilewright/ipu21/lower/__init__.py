"""From a plan to per-tile work: which words travel, which kernel runs with which arguments, which tiles are
alike. Still no addresses: everything is a buffer and an offset. Tiles are logical."""
