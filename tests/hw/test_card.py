"""The demo on a card. Skipped, with the reason, where there is none that can be used."""

from __future__ import annotations

import pytest

from tilewright import Session, open_device
from tilewright.compiler.pipeline import compile_graph
from tilewright.models import digits
from tilewright.runtime import list_devices

pytestmark = pytest.mark.hw


def test_digits_on_a_card() -> None:
    cards = [device for device in list_devices() if device.name != "sim"]
    usable = [device for device in cards if device.usable]
    if not usable:
        pytest.skip("; ".join(f"{card.name}: {card.reason}" for card in cards) or "no card in this computer")
    data = digits.load_data()
    model = digits.network(digits.train(data), batch=len(data.test_images))
    package = compile_graph(model.graph(), tiles=64)
    with open_device(usable[0].name) as device, Session(device, package) as session:
        logits = session.run({"x": data.test_images})["logits"]
    assert (logits.argmax(axis=1) == data.test_labels).mean() >= 0.96
