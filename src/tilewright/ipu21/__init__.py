"""Graphcore IPU21 (the C600 card): everything Tilewright knows of this machine."""
