"""Link and optimise many compiled functions once, instead of once per caller.

numba links every callee, and theirs, into each function it compiles and optimises the result. With a few
hundred small functions above each other that costs minutes. Inside `flat_linking` a function whose
qualified name starts with `PREFIX` is only translated; the first other function that is compiled receives
all of them, is optimised and becomes native code, whose object file it keeps. None has an entry from Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

PREFIX = "tilewright_engine."


class _Collected:
    """What waits for the final link: our own libraries, and those of numba they refer to.

    Attributes:
        final: the library that has received them.
    """

    def __init__(self) -> None:
        self.own: list[Any] = []
        self.foreign: dict[int, Any] = {}
        self.final: Any = None

    def take(self, library: Any) -> None:
        """Keep a translated library of ours for later."""
        self.own.append(library)
        for linked in library._linking_libraries:
            if not linked.name.startswith(PREFIX):
                self.foreign[id(linked)] = linked

    def link_into(self, library: Any) -> None:
        """Hand everything that was kept to a library, each function at most once."""
        library._linking_libraries = [
            item for item in library._linking_libraries if not item.name.startswith(PREFIX)
        ]
        for linked in self.foreign.values():
            if linked not in library._linking_libraries:
                library._linking_libraries.append(linked)
        # Callers first: the linker drops what nothing refers to yet.
        for own in reversed(self.own):
            library._final_module.link_in(own._get_module_for_linking(), preserve=True)


@contextmanager
def flat_linking() -> Iterator[None]:
    """Postpone linking and optimisation of functions named `PREFIX...` compiled inside.

    All are to be compiled without wrappers.
    """
    dynamic: Any = import_module("numba._dynfunc")
    libraries: Any = import_module("numba.core.codegen").CPUCodeLibrary
    targets: Any = import_module("numba.core.cpu").CPUContext
    collected = _Collected()
    original, original_executable = libraries.finalize, targets.get_executable

    def finalize(self: Any) -> None:
        if self.name.startswith(PREFIX):
            self._raise_if_finalized()
            collected.take(self)
            self._finalize_dynamic_globals()
            self._finalized = True
            return
        if any(item.name.startswith(PREFIX) for item in self._linking_libraries):
            collected.link_into(self)
            collected.final = self
            self.enable_object_caching()
        original(self)

    def get_executable(self: Any, library: Any, descriptor: Any, environment: Any) -> Any:
        if library is not collected.final and not library.name.startswith(PREFIX):
            return original_executable(self, library, descriptor, environment)
        if library is collected.final:
            # The object file comes to be when the first address in it is asked for.
            library.get_pointer_to_function(descriptor.llvm_func_name)
        # The entry from Python: what numba makes of a function without wrapper.
        name = descriptor.qualname.split(".")[-1]
        return dynamic.make_function(descriptor.lookup_module(), name, "", 0, environment, (library,))

    libraries.finalize = finalize
    targets.get_executable = get_executable
    try:
        yield
    finally:
        libraries.finalize = original
        targets.get_executable = original_executable
