"""Exchange phases as a package holds them: found, read back, followed word by word, saved, shown."""
