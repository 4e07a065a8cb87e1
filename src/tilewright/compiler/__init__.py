"""The machine-neutral part of compiling: from a graph and a target to a package."""
