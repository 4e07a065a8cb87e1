"""Log records on standard error: plain lines, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class LogLevel(StrEnum):
    """Least severe record that is shown."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def structured_line(level: str, logger: str, message: str, **fields: Any) -> str:
    """One JSON object with time (UTC), level, logger, message, and whatever else is known."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps(
        {"time": time, "level": level, "logger": logger, "message": message, **fields}, default=str
    )


class _Structured(logging.Formatter):
    """A record as `structured_line`; values given as `extra=` become fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return structured_line(record.levelname.lower(), record.name, record.getMessage(), **fields)


def configure(level: LogLevel, structured: bool) -> None:
    """Send records of Tilewright's loggers to standard error, replacing an earlier configuration."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_Structured() if structured else plain)
    logger = logging.getLogger("tilewright")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
