"""What a number that steers a computation may be: an edit outside is refused instead of computed with."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from engine.errors import EditError

LARGEST_SEED = 9999


@dataclass(frozen=True)
class Bounds:
    """low ≤ value ≤ high, or low < value where `low` itself is left out; `whole` numbers only if so said."""

    low: float
    high: float
    whole: bool = False
    above: bool = False

    def check(self, name: str, value: float) -> None:
        """Raise `EditError` for a value that the tensor `name` cannot hold."""
        if self.whole and value != int(value):
            raise EditError("not_whole", f"{name}: {value} is not a whole number", name=name, value=value)
        low, high = float(self.low), float(self.high)
        if self.above and not low < value <= high:
            raise EditError("not_above", f"{name}: {value} is not above {low} and at most {high}", name=name,
                            value=value, low=low, high=high)
        if high == inf and not low <= value:
            raise EditError("too_small", f"{name}: {value} is below {low}", name=name, value=value, low=low)
        if not low <= value <= high:
            raise EditError("out_of_bounds", f"{name}: {value} is outside {low}…{high}", name=name,
                            value=value, low=low, high=high)


SEEDS = Bounds(0, LARGEST_SEED, whole=True)
NOT_NEGATIVE = Bounds(0, inf)
