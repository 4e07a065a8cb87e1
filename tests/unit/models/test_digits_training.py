"""The digits reference: honest split, right gradients, repeatable training, and independent of Tilewright."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.models import digits, digits_reference

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def data() -> digits_reference.Digits:
    return digits.load_data()


@pytest.fixture(scope="module")
def parameters(data: digits_reference.Digits) -> digits_reference.Parameters:
    return digits.train(data)


def test_the_reference_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(digits_reference.__file__).read_text())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add((node.module or "").split(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"numpy", "sklearn"}


def test_the_split_is_stratified_and_complete(data: digits_reference.Digits) -> None:
    assert (len(data.train_labels), len(data.test_labels)) == (1437, 360)
    whole = np.bincount(data.train_labels) + np.bincount(data.test_labels)
    assert np.all(np.abs(np.bincount(data.test_labels) - whole * 360 / 1797) < 1)
    for images in (data.train_images, data.test_images):
        assert images.dtype == np.float32 and images.min() >= 0 and images.max() == 1
    train = {image.tobytes() for image in data.train_images}
    assert not any(image.tobytes() in train for image in data.test_images), (
        "held-out images are not trained on"
    )


@given(st.lists(st.integers(0, 4), min_size=5, max_size=60), st.data())
def test_stratified_choice(labels: list[int], draw: st.DataObject) -> None:
    array = np.array(labels)
    count = draw.draw(st.integers(0, len(labels)))
    chosen = digits_reference.stratified_choice(array, count, seed=3)
    assert len(set(chosen.tolist())) == len(chosen) == count
    for label in set(labels):
        share = count * labels.count(label) / len(labels)
        assert abs(int(np.sum(array[chosen] == label)) - share) < 1


def test_gradients_are_the_slope_of_the_loss() -> None:
    generator = np.random.default_rng(0)
    sizes = [(5, 4), (4, 3), (3, 3)]
    weights = [generator.standard_normal(size).astype(np.float32) for size in sizes]
    biases = [generator.standard_normal(size[1]).astype(np.float32) for size in sizes]
    images = generator.standard_normal((6, 5)).astype(np.float32)
    labels = generator.integers(0, 3, 6)

    def loss(values: list[np.ndarray]) -> float:
        current = images.astype(np.float64)
        for layer in range(3):
            current = current @ values[layer] + values[3 + layer]
            if layer < 2:
                inner = np.sqrt(2 / np.pi) * (current + 0.044715 * current**3)
                current = 0.5 * current * (1 + np.tanh(inner))
        shifted = current - current.max(axis=1, keepdims=True)
        return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(6), labels]))

    gradients = digits_reference._gradients(weights, biases, images, labels)
    values = [value.astype(np.float64) for value in (*weights, *biases)]
    for index, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [value.copy() for value in values]
                moved[index][place] += step
                sides.append(loss(moved))
            assert gradient[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=2e-5)


def test_training_is_accurate_and_repeatable(
    data: digits_reference.Digits, parameters: digits_reference.Parameters
) -> None:
    answers = digits_reference.forward(parameters, data.test_images).argmax(axis=1)
    assert np.mean(answers == data.test_labels) >= 0.97
    again = digits.train(data)
    for one, two in zip(
        (*parameters.weights, *parameters.biases), (*again.weights, *again.biases), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_the_network_over_ops_is_the_reference(
    data: digits_reference.Digits, parameters: digits_reference.Parameters
) -> None:
    model = digits.network(parameters)
    expected = digits_reference.forward(parameters, data.test_images)
    np.testing.assert_allclose(model.function(x=data.test_images), expected, rtol=1e-4, atol=1e-4)
    graph = model.graph()
    np.testing.assert_allclose(graph.evaluate({"x": data.test_images})["logits"], expected, atol=1e-4)
    assert [value.name for value, _ in graph.constants] == ["w0", "b0", "w1", "b1", "w2", "b2"]
    assert [operation.name for operation in graph.operations] == [
        *("matmul", "add", "gelu") * 2,
        "matmul",
        "add",
    ]
