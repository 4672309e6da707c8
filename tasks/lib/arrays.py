"""Arrays of numbers, by the name that their types have everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
