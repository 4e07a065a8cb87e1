"""Exchange phases: logical transfers to timed rows, and an independent judge of rows."""
