"""The C preprocessor's part of assembly sources: built in, or by an outside command."""

from .external import from_marked, is_marked, preprocess_with
from .headers import builtin_headers, public_constants
from .preprocessor import Preprocessed, needs_preprocessing, preprocess

__all__ = [
    "Preprocessed",
    "builtin_headers",
    "from_marked",
    "is_marked",
    "needs_preprocessing",
    "preprocess",
    "preprocess_with",
    "public_constants",
]
