"""The rules of a package, one module per part; `validation.validate` applies them all."""
