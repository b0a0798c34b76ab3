"""Lesson 16: LayerNorm beside RMSNorm, on the same vectors."""

from ui import lesson, parts_charts
from ui.layout import Rows, Slider, grid, op, optional, section

HERE, OWN = "layers.{layer}.layernorm", "layernorm.own"
WEIGHT = f"layers.{{layer}}.norm1.weight | {HERE}.weight"
MEASURES = ("mean", "variance", "skewness")


def measures(title: str, tensors: str) -> Rows:
    """Mean, variance and skewness of the vectors, one line each."""
    return Rows(title, tuple((f"line_{name}", grid(f"{tensors}.{name}")) for name in MEASURES))


lesson.show(
    "layernorm",
    section(
        "section_same_vectors", Slider(grid("layernorm.stretch"), "slider_stretch", 0.1, 10, 0.1, logarithmic=True),
        Slider(grid("layernorm.shift"), "slider_shift", -5, 5, 0.1),
        grid("{input}", title="stream_in"), op("×"), grid("layernorm.stretch"), op("+"),
        grid("layernorm.shift"), op("="), grid(f"{HERE}.x"), note="note_same_vectors",
    ),
    section(
        "section_layer_norm", grid(f"{HERE}.layer_norm.mean"), op("x − mean ="), grid(f"{HERE}.layer_norm.centered"),
        op("sign_mean_square"), grid(f"{HERE}.layer_norm.variance"), op("+"), grid("norm_epsilon"), op("√"),
        grid(f"{HERE}.layer_norm.std"), op("centered ÷ std ="), grid(f"{HERE}.layer_norm.normalized"), op("×"),
        grid(WEIGHT), op("+"), grid(f"layers.{{layer}}.norm1.bias | {HERE}.bias"), op("="),
        grid(f"{HERE}.layer_norm.output"), note="note_layer_norm",
    ),
    section(
        "section_rms_norm", grid(f"{HERE}.rms_norm.mean_square"), op("+"), grid("norm_epsilon"), op("√"),
        grid(f"{HERE}.rms_norm.rms"), op("x ÷ rms ="), grid(f"{HERE}.rms_norm.normalized"), op("×"),
        grid(WEIGHT), op("="), grid(f"{HERE}.rms_norm.output"), note="note_rms_norm",
    ),
    section(
        "section_shape", measures("title_before", f"{HERE}.before"), op("LayerNorm"),
        measures("title_after", f"{HERE}.after"), note="note_shape",
    ),
    section(
        "section_own_vector", grid(f"{OWN}.x"),
        Rows("title_normalized", (
            ("LayerNorm", grid(f"{OWN}.layer_norm.normalized")), ("RMSNorm", grid(f"{OWN}.rms_norm.normalized")),
        )),
        Rows(
            "title_measures",
            tuple((f"line_{name}", (grid(f"{OWN}.before.{name}"), grid(f"{OWN}.after.{name}"))) for name in MEASURES),
            columns=("column_before", "column_after"), column_axis="stage",
        ),
        note="note_own_vector",
    ),
    section(
        "section_two_norms",
        optional(grid("layers.{layer}.norm1.weight")), optional(grid("layers.{layer}.norm1.bias")),
        optional(grid("layers.{layer}.norm2.weight")), optional(grid("layers.{layer}.norm2.bias")),
        note="note_two_norms",
    ),
    chart=parts_charts.before_and_after,
)
