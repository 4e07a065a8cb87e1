"""Bounds of the file form. They exist so that a small file cannot ask for a large amount of memory."""

from __future__ import annotations

MAX_FILE_BYTES = 4 << 30
"""Largest package file that will be read."""
MAX_BLOB_BYTES = (1 << 29) - 1
"""Longest blob, stored or not: what one Cap'n Proto list can hold."""
MAX_TOTAL_BYTES = 2 << 30
"""All blobs and texts of one package together, uncompressed. The memory of all tiles is 0.9 GB, and each
byte of it may come once from an image and once from a weight."""
FREE_EXPANSION_BYTES = 1 << 20
"""A blob up to this size may be compressed to any ratio."""
MAX_RATIO = 1024
"""Highest compression of a larger blob; the writer stores it raw rather than exceed this."""
MAX_MESSAGE_SEGMENTS = 512
"""Segments of one Cap'n Proto message; the writer makes one or two."""
NESTING = 8
"""Pointer depth: package, list, call, list of numbers is already the deepest the schema has."""
TRAVERSAL_FACTOR = 8
"""A reader may follow pointers over at most this many times the words of the file."""
MAX_TEXT = 4096
"""Longest name or short text, in UTF-8 bytes."""
