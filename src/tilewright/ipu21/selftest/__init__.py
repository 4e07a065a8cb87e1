"""Programs that exchange and compute with known results, to try a device with."""
