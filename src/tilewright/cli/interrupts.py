"""Ctrl-C that cannot get lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. Inside a callback from native code (a
destructor, a compiler's call back) it is printed and dropped. So the signal is also noted, and asked for
between the stages of long work and at the end of a command.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pending = False


def _note(signum: int, frame: FrameType | None) -> None:
    global _pending
    _pending = True
    raise KeyboardInterrupt


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since `watching` began."""
    if _pending:
        raise KeyboardInterrupt


@contextmanager
def watching() -> Iterator[None]:
    """Note Ctrl-C inside; only the main thread of a process can."""
    global _pending
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _pending = False
    previous = signal.signal(signal.SIGINT, _note)
    try:
        yield
        check()
    finally:
        signal.signal(signal.SIGINT, previous)
        _pending = False
