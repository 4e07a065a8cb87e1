"""The committed instruction reference is the present one, and says what the table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.ipu21.isa.decode import decode
from tilewright.ipu21.isa.forms import FORMS
from tilewright.ipu21.isa_pages import pages
from tilewright.ipu21.isa_pages.__main__ import main

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parents[3] / "docs/isa"


@pytest.fixture(scope="module")
def current() -> dict[str, str]:
    return pages()


def test_the_committed_pages_are_current(current: dict[str, str]) -> None:
    committed = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in current.keys() | committed if current.get(name) != committed.get(name))
    assert not stale, f"run `make docs`: {stale}"
    assert sum(map(len, current.values())) < 600_000


def test_bits_of_every_form_decode_to_it(current: dict[str, str]) -> None:
    """Reads the bit pattern off the page: zeros for operands must decode to the form itself."""
    found = 0
    for form in FORMS:
        text = current[f"{form.mnemonic}.md"]
        match = re.search(re.escape(f"### `{form.text}`") + r"\n\n```\n([^\n]*)", text)
        assert match is not None, form.text
        cells = match.group(1).replace(" ", "")
        assert len(cells) == 32
        word = int(re.sub(r"[^01]", "0", cells), 2)
        assert decode(word).form is form
        found += 1
    assert found == 368


def test_every_mnemonic_says_what_it_does(current: dict[str, str]) -> None:
    silent = [name for name, text in current.items() if "Not simulated" in text]
    assert set(silent) <= {"f32v2aop.md", "f32sisoslic.md", "f32sisov2slic.md"}
    assert "if `condition` is" in current["movz.md"] and "movnz" in current["movz.md"]
    links = set(re.findall(r"\]\(([\w.]+\.md)\)", current["README.md"]))
    assert links == set(current) - {"README.md"}


def test_the_command_writes_and_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gone.md").write_text("old")
    assert main([str(tmp_path)]) == 0
    assert not (tmp_path / "gone.md").exists() and (tmp_path / "add.md").exists()
    assert main([str(tmp_path / "nowhere")]) == 2 and "error: give the folder" in capsys.readouterr().err
