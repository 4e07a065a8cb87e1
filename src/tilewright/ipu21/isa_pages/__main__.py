"""Write the instruction reference into a folder, and remove pages of instructions that are gone."""

from __future__ import annotations

import sys
from pathlib import Path

from ...errors import TilewrightError, UsageError
from ...files import write_whole
from .page import pages


def main(arguments: list[str]) -> int:
    """0 when the folder holds exactly the present pages, 2 with a message otherwise."""
    try:
        if len(arguments) != 1 or not Path(arguments[0]).is_dir():
            raise UsageError(
                "give the folder of the pages", hint="python -m tilewright.ipu21.isa_pages docs/isa"
            )
        folder, wanted = Path(arguments[0]), pages()
        for name, text in wanted.items():
            path = folder / name
            if not path.exists() or path.read_text() != text:
                write_whole(path, text.encode())
        for path in folder.glob("*.md"):
            if path.name not in wanted:
                path.unlink()
    except TilewrightError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
