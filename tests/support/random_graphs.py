"""Random graphs of all operators, for tests of everything that takes a graph.

    from support.random_graphs import RandomGraph, random_graphs

    @given(random_graphs(max_operations=6, steps=("dense", "add", "gelu")))
    def test_something(example: RandomGraph) -> None:
        example.graph, example.inputs

Every number comes from seeds that hypothesis draws. Magnitudes are kept where float16 is at home: a value
that could have grown past `LARGEST` is normalised before it is used on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright import ops
from tilewright.graph import Graph, print_graph, trace
from tilewright.tensor_type import TensorType

Array = NDArray[np.float32]

LARGEST = 50.0
"""Bound on the guessed magnitude of values; float16 ends at 65504, and sums of products go through it."""

MASKED = -10000.0


@dataclass(frozen=True)
class RandomGraph:
    """A verified graph, and data for its inputs by name."""

    graph: Graph
    inputs: dict[str, Array]

    def __repr__(self) -> str:
        return f"RandomGraph of\n{print_graph(self.graph)}"


@dataclass
class Item:
    """A traced value, with a guess of how large its elements get."""

    value: Any
    magnitude: float

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.value.shape
        return shape


@st.composite
def random_graphs(
    draw: st.DrawFn,
    *,
    max_operations: int = 8,
    steps: Sequence[str] | None = None,
    sizes: Sequence[int] = (1, 2, 3, 4, 5, 8, 16, 17),
    max_rank: int = 4,
    max_elements: int = 4096,
    every_value_is_output: bool = False,
) -> RandomGraph:
    """Graphs of one to some more than `max_operations` operations (a step may take several).

    Args:
        steps: which of `STEPS` may be taken; None takes all. An `add` of a constant may be taken always, and
            loops contain a product, sums and a layer norm.
        sizes: extents of inputs and weights. Operators make others from them.
        max_elements: of any one value.
        every_value_is_output: all values outside loops are outputs, not only those that nothing uses.
    """
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rank = draw(st.integers(2, min(3, max_rank)))
    size = st.sampled_from(sizes)
    shape = tuple(draw(size) for _ in range(rank))
    while math.prod(shape) > max_elements:
        shape = (*shape[:-1], max(1, shape[-1] // 2)) if shape[-1] > 1 else (1, *shape[1:])
    inputs = {"x": normal(generator, shape)}
    allowed = tuple(STEPS) if steps is None else tuple(steps)
    if draw(st.booleans()):
        inputs["y"] = normal(generator, draw(st.sampled_from([shape, shape[1:], (*shape[:-1], 1)])))
    if "attention" in allowed and draw(st.booleans()):
        hidden = generator.integers(0, shape[-2])
        inputs["mask"] = np.where(np.arange(shape[-2]) < shape[-2] - hidden, 0, MASKED).astype(np.float32)
    count = draw(st.integers(1, max_operations))

    def network(**given: Any) -> dict[str, Any]:
        builder = Builder(draw, generator, sizes, max_rank, max_elements, allowed)
        builder.pool = [Item(given[name], 4.0) for name in given if name != "mask"]
        if "mask" in given:
            builder.keep(builder.attend(builder.pool[0], given["mask"]))
        for _ in range(count):
            builder.step()
        used_inputs = {id(item) for item in builder.used}
        for item in builder.pool[: len(given) - ("mask" in given)]:
            if id(item) not in used_inputs:
                builder.keep(Item(item.value + normal(generator, item.shape[-1:]), item.magnitude + 4))
        kept = builder.computed
        if not every_value_is_output:
            kept = [item for item in kept if id(item) not in {id(used) for used in builder.used}]
        return {f"out{index}": item.value for index, item in enumerate(kept)}

    graph = trace(network, **{name: TensorType(array.shape) for name, array in inputs.items()})
    return RandomGraph(graph, inputs)


def normal(generator: np.random.Generator, shape: Sequence[int], scale: float = 1.0) -> Array:
    """Normally distributed numbers that float16 holds exactly."""
    return (generator.standard_normal(shape) * scale).astype(np.float16).astype(np.float32)


class Builder:
    """Takes random steps on a pool of values."""

    def __init__(
        self,
        draw: st.DrawFn,
        generator: np.random.Generator,
        sizes: Sequence[int],
        max_rank: int,
        max_elements: int,
        steps: Sequence[str],
        depth: int = 0,
    ) -> None:
        self.draw = draw
        self.generator = generator
        self.sizes = sizes
        self.max_rank = max_rank
        self.max_elements = max_elements
        self.steps = steps
        self.depth = depth
        self.pool: list[Item] = []
        self.computed: list[Item] = []
        self.used: list[Item] = []

    def choose(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def keep(self, item: Item) -> None:
        self.pool.append(item)
        self.computed.append(item)

    def step(self) -> None:
        """One step on a value of the pool, later ones more likely; its result joins the pool."""
        item = self.take(self.pool)
        result = STEPS[self.choose(self.steps)](self, item)
        if result is None:  # the step cannot be taken on this value; one that always can
            result = self.add_constant(item)
        self.keep(result)

    def take(self, items: Sequence[Item]) -> Item:
        """One of `items`, made small enough to be used on."""
        last = items[-3:]
        return self.tamed(self.choose([*last, *last, *items]))

    def tamed(self, item: Item) -> Item:
        self.used.append(item)
        if item.magnitude <= LARGEST:
            return item
        tame = (
            Item(ops.l2_normalize(item.value), 1.0) if "l2_normalize" in self.steps else self.layer_norm(item)
        )
        self.keep(tame)
        self.used.append(tame)
        return tame

    def weight(self, shape: Sequence[int], inner: int) -> Array:
        return normal(self.generator, shape, 1 / math.sqrt(inner))

    def fits(self, shape: Sequence[int]) -> bool:
        return len(shape) <= self.max_rank and math.prod(shape) <= self.max_elements

    def dense(self, item: Item) -> Item | None:
        """x @ w, w constant; one matrix per batch entry now and then."""
        columns = self.choose(self.sizes)
        inner = item.shape[-1] if item.shape else 0
        if len(item.shape) < 2 or not self.fits((*item.shape[:-1], columns)):
            return None
        batch = item.shape[:-2] if self.choose([False, False, True]) else ()
        if self.choose([False, True]):
            w = self.weight((*batch, columns, inner), inner)
            return Item(ops.matmul(item.value, w, transpose_b=True), item.magnitude * 1.2)
        w = self.weight((*batch, inner, columns), inner)
        return Item(item.value @ w, item.magnitude * 1.2)

    def product(self, item: Item) -> Item | None:
        """a @ b or a @ b^T of two computed values, perhaps the same one twice."""
        if len(item.shape) < 2:
            return None
        partners: list[tuple[Item, bool]] = []
        for other in self.pool:
            if (
                len(other.shape) < 2
                or other.magnitude > LARGEST
                or not _broadcast(item.shape[:-2], other.shape[:-2])
            ):
                continue
            if other.shape[-1] == item.shape[-1]:
                partners.append((other, True))
            if other.shape[-2] == item.shape[-1]:
                partners.append((other, False))
        growth = math.sqrt(item.shape[-1]) * item.magnitude
        partners = [(o, t) for o, t in partners if growth * o.magnitude <= LARGEST * LARGEST]
        if not partners:
            return None
        other, transposed = self.choose(partners)
        columns = other.shape[-2] if transposed else other.shape[-1]
        batch = np.broadcast_shapes(item.shape[:-2], other.shape[:-2])
        if not self.fits((*batch, item.shape[-2], columns)):
            return None
        self.used.append(other)
        value = ops.matmul(item.value, other.value, transpose_b=transposed)
        return Item(value, growth * other.magnitude)

    def add(self, item: Item) -> Item | None:
        """A sum with a value of the pool: a residual, a broadcast, itself."""
        others = [
            other
            for other in self.pool
            if _broadcast(item.shape, other.shape)
            and self.fits(np.broadcast_shapes(item.shape, other.shape))
            and other.magnitude <= LARGEST
        ]
        if not others or self.choose([False, True]):
            return self.add_constant(item)
        other = self.choose(others)
        self.used.append(other)
        pair = (item.value, other.value) if self.choose([False, True]) else (other.value, item.value)
        return Item(ops.add(*pair), item.magnitude + other.magnitude)

    def add_constant(self, item: Item) -> Item:
        keep = [self.choose([False, True]) for _ in item.shape]
        shape = [extent if kept else 1 for extent, kept in zip(item.shape, keep, strict=True)]
        first = self.choose(range(len(shape) + 1))
        if any(extent > 1 for extent in shape[:first]):
            first = 0
        constant = normal(self.generator, shape[first:])
        return Item(item.value + constant, item.magnitude + 4)

    def gelu(self, item: Item) -> Item:
        return Item(ops.gelu(item.value, approximate=self.choose(["tanh", "none"])), item.magnitude)

    def layer_norm(self, item: Item) -> Item | None:
        if not item.shape:
            return None
        gamma = self.row(item.shape[-1]) or Item(1 + normal(self.generator, item.shape[-1:], 0.1), 1.0)
        beta = self.row(item.shape[-1]) or Item(normal(self.generator, item.shape[-1:], 0.1), 0.0)
        epsilon = self.choose([1e-5, 1e-6, 1e-12])
        value = ops.layer_norm(item.value, gamma.value, beta.value, epsilon=epsilon)
        return Item(value, 4 * gamma.magnitude + beta.magnitude)

    def row(self, columns: int) -> Item | None:
        """The first row of a value with so many columns now and then, of length 1."""
        others = [other for other in self.pool if other.shape[-1:] == (columns,)]
        if not others or "l2_normalize" not in self.steps or self.choose([True, True, False]):
            return None
        item = self.choose(others)
        for step in (
            lambda value: ops.reshape(value, shape=(-1, columns)),
            lambda value: ops.slice(value, axis=0, start=0, stop=1),
            lambda value: ops.reshape(value, shape=(columns,)),
            ops.l2_normalize,
        ):
            self.used.append(item)
            item = Item(step(item.value), 1.0 if step is ops.l2_normalize else item.magnitude)
            self.keep(item)
        self.used.append(item)
        return item

    def softmax(self, item: Item) -> Item | None:
        return Item(ops.softmax(item.value), 1.0) if item.shape else None

    def l2_normalize(self, item: Item) -> Item | None:
        return Item(ops.l2_normalize(item.value), 1.0) if item.shape else None

    def attention(self, item: Item) -> Item | None:
        """Attention of a value to itself or another of the pool."""
        if len(item.shape) < 2 or not self.fits((*item.shape[:-1], item.shape[-2])):
            return None
        return self.attend(item, None)

    def attend(self, item: Item, mask: Any) -> Item:
        self.used.append(item)
        keys = [
            other
            for other in self.pool
            if len(other.shape) == len(item.shape)
            and other.shape[-1] == item.shape[-1]
            and other.shape[:-2] == item.shape[:-2]
            and other.magnitude <= LARGEST
        ]
        k = self.choose(keys) if keys and mask is None else item
        values = [o for o in keys if o.shape[-2] == k.shape[-2]]
        v = self.choose(values) if values and mask is None else k
        self.used += [k, v]
        columns = item.shape[-1]
        heads = self.choose([n for n in range(1, columns + 1) if columns % n == 0][:6])
        length = k.shape[-2]
        if mask is None and self.choose([False, False, True]):
            hidden = self.generator.integers(0, length)
            mask = np.where(np.arange(length) < length - hidden, 0, MASKED).astype(np.float32)
        causal = item.shape[-2] <= length and mask is None and self.choose([False, False, True])
        # Scores stay near 1, as after the projections of a trained model.
        scale = 1 / (math.sqrt(columns / heads) * max(1.0, item.magnitude * k.magnitude / 16))
        value = ops.attention(
            item.value,
            k.value,
            v.value,
            mask,
            heads=heads,
            scale=self.choose([scale, scale / 2]),
            causal=causal,
        )
        return Item(value, v.magnitude)

    def reshape(self, item: Item) -> Item | None:
        """Two axes merged, one split, or an axis of 1 added."""
        shape = list(item.shape)
        kind = self.choose(["merge", "split", "one"])
        if kind == "merge" and len(shape) >= 2:
            axis = self.choose(range(len(shape) - 1))
            shape[axis : axis + 2] = [-1]
        elif kind == "split" and shape:
            axis = self.choose(range(len(shape)))
            divisor = self.choose([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
            shape[axis : axis + 1] = [divisor, shape[axis] // divisor]
        else:
            shape.insert(self.choose(range(len(shape) + 1)), 1)
        if len(shape) > self.max_rank:
            return None
        return Item(ops.reshape(item.value, shape=shape), item.magnitude)

    def transpose(self, item: Item) -> Item | None:
        if len(item.shape) < 2:
            return None
        permutation = self.draw(st.permutations(range(len(item.shape))))
        return Item(ops.transpose(item.value, permutation=permutation), item.magnitude)

    def slice(self, item: Item) -> Item | None:
        if not item.shape:
            return None
        axis = self.choose(range(len(item.shape)))
        start = self.draw(st.integers(0, item.shape[axis] - 1))
        stop = self.draw(st.integers(start + 1, item.shape[axis]))
        return Item(ops.slice(item.value, axis=axis, start=start, stop=stop), item.magnitude)

    def concat(self, item: Item) -> Item | None:
        """With others of the pool that differ in at most this axis, or with a constant."""
        if not item.shape:
            return None
        axis = self.choose(range(len(item.shape)))
        rest = _without(item.shape, axis)
        others = [
            other
            for other in self.pool
            if len(other.shape) == len(item.shape)
            and _without(other.shape, axis) == rest
            and other.magnitude <= LARGEST
        ]
        parts = [item, *(self.choose(others) for _ in range(self.choose([0, 1, 2])) if others)]
        if len(parts) == 1:
            shape = (*item.shape[:axis], self.choose(self.sizes), *item.shape[axis + 1 :])
            parts.append(Item(normal(self.generator, shape), 4.0))
        total = sum(part.shape[axis] for part in parts)
        if not self.fits((*item.shape[:axis], total, *item.shape[axis + 1 :])):
            return None
        self.used += parts
        value = ops.concat(*(part.value for part in parts), axis=axis)
        return Item(value, max(part.magnitude for part in parts))

    def repeat(self, item: Item) -> Item | None:
        """Layers over a carried value, with weights per layer, captured values, at times two carried ones."""
        if len(item.shape) < 2 or self.depth == 2:
            return None
        count = self.choose([1, 2, 3])
        columns = item.shape[-1]
        stacks = {
            "w": self.weight((count, columns, columns), columns),
            "b": normal(self.generator, (count, columns), 0.1),
            "g": 1 + normal(self.generator, (count, columns), 0.1),
        }
        two = self.choose([False, False, True])
        plain = [step for step in _KEEPING_SHAPE if step in self.steps]
        chosen = [self.choose(plain) for _ in range(self.choose([1, 2, 3]))]
        inner = Builder(
            self.draw,
            self.generator,
            self.sizes,
            self.max_rank,
            self.max_elements,
            self.steps,
            self.depth + 1,
        )

        def body(y: Any, *carried: Any, **parts: Any) -> Any:
            start = Item(y, 4.0)
            # What lies outside and has this shape is captured now and then.
            inner.pool = [start, *(other for other in self.pool if other.shape == item.shape)]
            current = start
            for step in chosen:
                taken = STEPS[step](inner, inner.tamed(current))
                current = inner.add_constant(current) if taken is None else taken
                if current.shape != item.shape:
                    current = start
                    continue
                inner.pool.append(current)
            layer = current.value @ parts["w"] + parts["b"]
            following = ops.layer_norm(layer + y, parts["g"], parts["b"])
            return (following, carried[0] + following) if two else following

        if not two:
            return Item(ops.repeat(body, count, item.value, stacks), 4.0)
        first, second = ops.repeat(body, count, (item.value, item.value), stacks)
        self.keep(Item(first, 4.0))
        return Item(second, item.magnitude + 4.0 * count)


def _broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        return False
    return True


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


STEPS: dict[str, Callable[[Builder, Item], Item | None]] = {
    "add": Builder.add,
    "dense": Builder.dense,
    "product": Builder.product,
    "gelu": Builder.gelu,
    "layer_norm": Builder.layer_norm,
    "softmax": Builder.softmax,
    "l2_normalize": Builder.l2_normalize,
    "attention": Builder.attention,
    "reshape": Builder.reshape,
    "transpose": Builder.transpose,
    "slice": Builder.slice,
    "concat": Builder.concat,
    "repeat": Builder.repeat,
}
"""Steps by name: the operators, `matmul` as `dense` (by a constant) and `product` (of two values)."""

_KEEPING_SHAPE = ("add", "gelu", "layer_norm", "softmax", "l2_normalize", "attention", "repeat")
"""Steps that loops are made of; an `add` may still broadcast, its result is dropped then."""
