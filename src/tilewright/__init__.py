"""Tilewright: one static program for every tile of a tile processor, from a neural network."""

__version__ = "0.1.0"
