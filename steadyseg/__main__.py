"""`python -m steadyseg`: the command line."""

import sys

from steadyseg.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
