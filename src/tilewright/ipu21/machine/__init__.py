"""Geometry, memory map, topology, route times and cycle constants of the IPU21, each with its evidence."""
