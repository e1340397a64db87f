"""`python -m bnp_models` is the command `bnp-models`."""

import sys

from bnp_models.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
