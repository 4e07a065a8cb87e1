"""Puts another source in the place of one module of this process, and forgets what the old one led to.

Only for processes that end afterwards. The source lies in a file of its own in a temporary folder, so that
caches that belong to a source file do not meet the original's.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class _Overlay(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, file: Path, package: bool) -> None:
        self._module, self._file, self._package = module, file, package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        # A package's submodules stay where they are.
        folders = [str(Path(folder) / fullname.rpartition(".")[2]) for folder in path or ()]
        return spec_from_file_location(
            fullname, self._file, submodule_search_locations=folders if self._package else None
        )


def imports_of(module: ModuleType) -> set[str]:
    """Names of modules, and of things in them, that a module's source imports anywhere; its packages are not
    among them."""
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return set()
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            name = ".".join(filter(None, (base, node.module or "")))
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
    return found


class Dependents:
    """Who imports whom among the loaded modules of some packages."""

    def __init__(self, *packages: str) -> None:
        self.users: dict[str, set[str]] = {}
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in packages:
                for used in imports_of(module):
                    self.users.setdefault(used, set()).add(name)

    def of(self, module: str) -> list[str]:
        """The module and all that import it, directly or not, sorted."""
        found, waiting = {module}, [module]
        while waiting:
            for user in self.users.get(waiting.pop(), ()):
                if user not in found:
                    found.add(user)
                    waiting.append(user)
        return sorted(found)


def replace_module(module: str, source: str, folder: Path, dependents: Sequence[str]) -> None:
    """From now on this process imports `source` as `module`.

    Args:
        folder: temporary; the source is written there.
        dependents: of the module, itself among them; they are forgotten.
    """
    package = hasattr(sys.modules.get(module), "__path__")
    file = folder / f"{module.rpartition('.')[2]}.py"
    file.write_text(source)
    sys.meta_path.insert(0, _Overlay(module, file, package))
    importlib.invalidate_caches()
    forgotten = []
    for name in dependents:
        known = sys.modules.pop(name, None)
        if known is not None:
            forgotten.append(name)
            # `from package import module` asks the package first.
            parent, _, last = name.rpartition(".")
            if parent in sys.modules and vars(sys.modules[parent]).get(last) is known:
                delattr(sys.modules[parent], last)
    for name in forgotten:
        importlib.import_module(name)
    # A package made anew does not know the submodules that were kept.
    for name in list(sys.modules):
        parent, _, last = name.rpartition(".")
        if parent in forgotten and not hasattr(sys.modules[parent], last):
            setattr(sys.modules[parent], last, sys.modules[name])
