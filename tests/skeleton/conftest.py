"""Put the skeleton's modules where they would be in the library: beside the other models."""

from pathlib import Path

import bnp_kernels
import bnp_models.models

HERE = Path(__file__).parent
bnp_kernels.__path__.append(str(HERE / "kernels" / "bnp_kernels"))
bnp_models.models.__path__.append(str(HERE / "bnp_models" / "models"))
