"""Lesson 17: GELU and the MLP; what an activation lets through, and what it lets back."""

from ui import lesson, parts_charts
from ui.layout import Rows, Slider, grid, op, optional, section

MLP, UNITS, OWN, TABLE = "layers.{layer}.mlp", "layers.{layer}.gelu", "gelu.own", "gelu.table"
FUNCTIONS = ("relu", "gelu_tanh", "gelu_erf", "relu_squared")


def functions(title: str, ending: str = "") -> Rows:
    """x, and under it the activation functions of it, or their slopes."""
    lines = [(f"line_{name}", grid(f"{TABLE}.{name}{ending}")) for name in FUNCTIONS]
    return Rows(title, (("x", grid(f"{TABLE}.x")), *lines))


lesson.show(
    "gelu",
    section(
        "section_own_x", Slider(grid(f"{OWN}.x"), "slider_x", -4, 4, 0.05), grid(f"{OWN}.x"),
        Rows(
            "title_functions",
            tuple((f"line_{name}", (grid(f"{OWN}.{name}"), grid(f"{OWN}.{name}_slope"))) for name in FUNCTIONS),
            columns=("column_value", "column_slope"), column_axis="reading",
        ),
        note="note_own_x",
    ),
    section(
        "section_by_steps", grid(f"{OWN}.x"), op("sign_cube"), grid(f"{OWN}.steps.cube"), op("sign_bend"),
        grid(f"{OWN}.steps.bent"), op("× √(2/π)"), grid(f"{OWN}.steps.inner"), op("tanh"),
        grid(f"{OWN}.steps.tanh"), op("sign_raise"), grid(f"{OWN}.steps.kept"), op("× x"),
        grid(f"{OWN}.steps.gelu"), note="note_by_steps",
    ),
    section(
        "section_by_share", grid(f"{OWN}.x"), op("Φ"), grid(f"{OWN}.steps.normal_cdf"), op("× x"),
        grid(f"{OWN}.steps.product"), note="note_by_share",
    ),
    section(
        "section_table", functions("title_values"),
        Rows("title_printed", (
            ("line_printed", grid(f"{TABLE}.printed")), ("line_gelu_tanh", grid(f"{TABLE}.gelu_tanh")),
            ("line_difference", grid(f"{TABLE}.difference")),
        )),
        functions("title_slopes", "_slope"), note="note_table",
    ),
    section(
        "section_widen", grid("{mlp_input}"), op("@"), grid(f"{MLP}.W_up"),
        optional(op("+"), grid(f"{MLP}.b_up")), op("="), grid(f"{MLP}.up"), op("sign_activation"),
        grid(f"{MLP}.activation"), note="note_widen",
    ),
    section(
        "section_dead", grid(f"{UNITS}.dead", title="title_dead"),
        Rows("title_units", (
            ("line_passes", grid(f"{UNITS}.relu_slopes")), ("line_relu_gradient", grid(f"{UNITS}.relu_gradient")),
            ("line_gelu_gradient", grid(f"{UNITS}.gelu_gradient")),
        )),
        note="note_dead",
    ),
    section(
        "section_narrow", grid(f"{MLP}.activation"), op("@"), grid(f"{MLP}.W_down"),
        optional(op("+"), grid(f"{MLP}.b_down")), op("="), grid(f"{MLP}.output"),
    ),
    chart=parts_charts.curves,
)
