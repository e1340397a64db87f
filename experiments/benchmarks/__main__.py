"""Run the comparison with other libraries: `python -m experiments.benchmarks`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.speed import main

sys.exit(main())
