"""Run the comparison with other libraries: `python -m experiments.benchmarks`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from speed import main

sys.exit(main())
