"""The C preprocessor's part of assembly sources: built in, or by an outside command."""

from .external import preprocess_with
from .headers import builtin_headers
from .preprocessor import Preprocessed, needs_preprocessing, preprocess

__all__ = ["Preprocessed", "builtin_headers", "needs_preprocessing", "preprocess", "preprocess_with"]
