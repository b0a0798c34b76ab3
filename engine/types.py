"""Names for the array types of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Integers = NDArray[np.int64]
Index = tuple[int, ...]
