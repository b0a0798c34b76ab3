"""What pages that choose a token have in common: the settings, and tables of the leading ranks."""

from __future__ import annotations

from engine.programs.choosing import DRAWS, LEADING
from ui.layout import Rows, Slider, grid

SLIDERS = (
    Slider(grid("choosing.temperature"), "slider_temperature", 0, 2, 0.05),
    Slider(grid("choosing.top_k"), "slider_top_k", 1, "V", 1, logarithmic=True),
    Slider(grid("choosing.top_p"), "slider_top_p", 0.05, 1, 0.05),
    Slider(grid("choosing.seed"), "slider_draw_seed", 0, 999, 1),
)
# the same as numbers to type
SETTINGS = Rows("title_settings", (("", tuple(
    grid(f"choosing.{name}") for name in ("temperature", "top_k", "top_p", "seed")
)),), columns=("T", "k", "p", "column_seed"), looks=True)


def ranking(title: str, columns: tuple[tuple[str, str], ...]) -> Rows:
    """A row for each token in order of its logit; columns by their label and the step that they show."""
    return Rows(title, tuple(
        (str(rank + 1), tuple(grid(f"choosing.{name}", rank=rank) for _, name in columns)) for rank in range(LEADING)
    ), axis="axis_rank", columns=tuple(label for label, _ in columns), looks=True)


def draws() -> tuple[Rows, Rows]:
    """The numbers u of all draws, and the tokens that they drew, as two tables."""
    return _draws(range(DRAWS // 2)), _draws(range(DRAWS // 2, DRAWS))


def _draws(numbers: range) -> Rows:
    return Rows("title_draws", tuple(
        (f"{number + 1}", (grid("choosing.u", draw=number), grid("choosing.drawn", draw=number)))
        for number in numbers
    ), axis="axis_draw", columns=("u", "column_token"), looks=True)
