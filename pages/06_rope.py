"""Lesson 6: RoPE; queries and keys turn by an angle that grows with the position."""

from ui import charts, lesson
from ui.layout import KEY, QUERY, Slider, grid, op, section

lesson.show(
    "rope",
    section(
        "section_angles", Slider(grid("rope.offset"), "slider_offset", 0, 20, 1),
        grid("rope.positions"), op("+"), grid("rope.offset"), op("="),
        grid("rope.shifted"), op("×"), grid("rope.frequencies"), op("="), grid("rope.angles"),
        op("sign_cos_sin"), grid("rope.cosines"), grid("rope.sines"),
    ),
    section(
        "section_turn", grid("layers.{layer}.attention.q_heads"), op("sign_turn"),
        grid("layers.{layer}.attention.q_rotated"), note="note_pairing",
    ),
    section(
        None, grid("layers.{layer}.attention.k_heads"), op("sign_turn"),
        grid("layers.{layer}.attention.k_rotated"),
    ),
    section(
        "section_unturned", grid(QUERY), op("sign_transposed"), grid(KEY), op("="),
        grid("layers.{layer}.attention.dot"),
        note="note_unturned",
    ),
    section(None, grid("layers.{layer}.attention.v_heads")),
    chart=charts.rope_plane,
)
