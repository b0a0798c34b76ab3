"""Lesson 24: why residuals; ten layers with and without them, and the size of the gradient at each."""

from engine.programs.why_residuals import LAYERS, PATHS
from ui import lesson, why_charts
from ui.layout import Grid, Rows, Slider, grid, op, section


def own(name: str, title: str | None = None) -> Grid:
    """A tensor of the ten layers."""
    return grid(f"why_residuals.{name}", title=title and f"title_residuals_{title}")


def by_layer(path: str, name: str) -> Rows:
    """A vector of every layer on one path."""
    lines = tuple((str(layer), own(f"{path}.{layer}.{name}")) for layer in LAYERS)
    return Rows(f"title_residuals_{path}", lines, axis="layer")


GAIN = Slider(own("gain"), "slider_residuals_gain", 0.1, 5, 0.1, logarithmic=True)
SIZES = Rows(
    "title_residuals_sizes",
    tuple((str(layer), tuple(own(f"{path}.{layer}.gradient_size") for path in PATHS)) for layer in LAYERS),
    axis="layer", columns=tuple(why_charts.FORMS.values()), column_axis="path",
)

lesson.show(
    "why_residuals",
    section(
        "section_residuals_forward", own("input", "input"), own("1.W_drawn", "drawn"), op("×"), own("gain", "gain"),
        op("="), own("1.W", "weight"), note="note_residuals_forward",
    ),
    section(None, *(by_layer(path, "x_out") for path in PATHS)),
    section("section_residuals_backward", own("direction", "direction"), note="note_residuals_backward"),
    section(None, *(by_layer(path, "gradient") for path in PATHS)),
    section(
        "section_residuals_roads", own("residual.2.gradient", "arriving"), op("× 1 +"),
        own("residual.1.through", "through"), op("="), own("residual.1.gradient", "going_on"), GAIN,
        note="note_residuals_roads",
    ),
    section(
        None, own("residual.2.gradient", "arriving"), op("×"), own("residual.1.slope", "slope"), op("="),
        own("residual.1.gradient_h", "at_h"), op("@ Wᵀ"), own("1.W", "weight"), op("="),
        own("residual.1.through", "through"), note="note_residuals_through",
    ),
    section(
        "section_residuals_one_road", own("plain.2.gradient", "arriving"), op("×"), own("plain.1.slope", "slope"),
        op("="), own("plain.1.gradient_h", "at_h"), op("@ Wᵀ"), own("1.W", "weight"), op("="),
        own("plain.1.gradient", "going_on"), note="note_residuals_one_road",
    ),
    section("section_residuals_sizes", GAIN, note="note_residuals_sizes"),
    section(None, SIZES),
    chart=why_charts.gradient_sizes,
)
