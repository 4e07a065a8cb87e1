"""`python -m tilewright` is the command `tilewright`."""

from .cli.main import main

if __name__ == "__main__":
    main()
