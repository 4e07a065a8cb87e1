"""Cycle profiles: record a session's runs, keep them in a file, ask them, look at them."""

from .build import ProfileBuilder
from .files import load_profile, looks_like_profile, read_profile, save_profile, write_profile
from .granularity import Granularity
from .query import KEYS, SORTS, Group, Result, query
from .records import KINDS, Profile, Run, Step

__all__ = [
    "KEYS",
    "KINDS",
    "SORTS",
    "Granularity",
    "Group",
    "Profile",
    "ProfileBuilder",
    "Result",
    "Run",
    "Step",
    "load_profile",
    "looks_like_profile",
    "query",
    "read_profile",
    "save_profile",
    "write_profile",
]
