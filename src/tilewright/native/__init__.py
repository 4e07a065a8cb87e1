"""Native code: inner loops in Python (`loops`), and the object files that code is kept in (`objects`)."""
