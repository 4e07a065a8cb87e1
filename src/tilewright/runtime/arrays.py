"""The user's arrays against the bindings of a package, before anything touches a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.errors import BindingError
from tilewright.package.records import Binding


def check_inputs(
    bindings: Sequence[Binding], given: Mapping[str, ArrayLike]
) -> dict[str, NDArray[np.generic]]:
    """One array per binding, in its host type.

    An array must have the binding's exact shape and a type that converts to the host type without loss of any
    value; Python numbers and lists take the host type. Raises one BindingError that lists every fault.
    """
    faults: list[str] = []
    arrays: dict[str, NDArray[np.generic]] = {}
    known = {binding.name: binding for binding in bindings}
    faults += [f"input {name!r} is missing" for name in known if name not in given]
    faults += [f"there is no input {name!r}" for name in given if name not in known]
    for name, binding in known.items():
        if name in given:
            array = _array(binding, given[name])
            if isinstance(array, str):
                faults.append(f"input {name!r}: {array}")
            else:
                arrays[name] = array
    if faults:
        wanted = ", ".join(describe(binding) for binding in bindings) or "no inputs"
        raise BindingError("; ".join(faults), hint=f"the package takes {wanted}")
    return arrays


def describe(binding: Binding) -> str:
    """A binding as people write it: `x float32[4, 20]`."""
    return f"{binding.name} {binding.host_dtype}{list(binding.shape)}"


def _array(binding: Binding, value: ArrayLike) -> NDArray[np.generic] | str:
    """The array, or what is wrong with it."""
    host = np.dtype(binding.host_dtype)
    try:
        array = np.asarray(value)
    except ValueError:
        return "not a rectangular array"
    plain = isinstance(value, int | float | list | tuple)
    if array.shape != binding.shape:
        return f"shape {list(array.shape)} given, {list(binding.shape)} expected"
    if not np.can_cast(array.dtype, host, "same_kind" if plain else "safe"):
        return f"{array.dtype} given, {host} expected (convert it with .astype)"
    try:
        return np.asarray(value if plain else array, dtype=host)
    except OverflowError:
        return f"a number does not fit {host}"
