"""The `.ipuexe` package: what it holds, how it is stored, and every rule it must keep.

Importing this is cheap: the message library and the compressor load with the first file written or read.
"""

from .blobs import BlobStore
from .digest import package_digest
from .orders import element_index, pack_slices, unpack_slices
from .reader import load_package, read_package
from .records import Package
from .validation import validate
from .writer import save_package, write_package

__all__ = [
    "BlobStore",
    "Package",
    "element_index",
    "load_package",
    "pack_slices",
    "package_digest",
    "read_package",
    "save_package",
    "unpack_slices",
    "validate",
    "write_package",
]
