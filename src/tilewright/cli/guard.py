"""How every command ends: one clear line, and an exit status that scripts can rely on.

0    done
1    a defect of Tilewright; `--debug` shows where
2    the request or the input is at fault; nothing was written
130  interrupted
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from tilewright.errors import TilewrightError

from . import interrupts
from .console import error_line, interrupted_line, settings

# Newer typer carries its own click, older imports it: the class is found from one that both export.
_ClickError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

INPUT_FAULT = 2
DEFECT = 1
INTERRUPTED = 130


@contextmanager
def guarded() -> Iterator[None]:
    """Turn whatever goes wrong inside into a line on standard error and `typer.Exit`."""
    try:
        with interrupts.watching():
            yield
    except (typer.Exit, typer.Abort):
        raise
    except _ClickError as error:
        if error.format_message():  # empty when help has been shown instead
            error_line(_usage(error))
        raise typer.Exit(error.exit_code) from None
    except TilewrightError as error:
        _show_traceback()
        error_line(str(error))
        raise typer.Exit(INPUT_FAULT) from None
    except KeyboardInterrupt:
        _show_traceback()
        interrupted_line()
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of our output has left. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(DEFECT) from None
    except MemoryError:
        _show_traceback()
        error_line("this machine has not enough memory for that")
        raise typer.Exit(INPUT_FAULT) from None
    except Exception as error:
        _show_traceback()
        text = " ".join(str(error).split())
        ask = "" if settings.debug else "; please run it again with --debug and report what it prints"
        error_line(f"a defect of Tilewright: {type(error).__name__}: {text}{ask}")
        raise typer.Exit(DEFECT) from None


def _usage(error: Any) -> str:
    message = error.format_message().strip().rstrip(".")
    message = message[:1].lower() + message[1:]
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else "tilewright"
    return f"{message} (see '{path} --help')"


def _show_traceback() -> None:
    if settings.debug:
        traceback.print_exc(file=sys.stderr)
