"""Tile programs, host programs and packet tables, tile images, and the package that holds them."""
