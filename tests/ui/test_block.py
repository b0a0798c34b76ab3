"""The lesson on the whole GPT-2 block: the article's numbers in the article's order, and other models' blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import ModelConfig, presets
from tests.ui.support import Numbers, addresses, decoded, edit, framed, items, reader
from ui import flow, navigation
from ui.state import State
from ui.switches import FIELDS
from ui.text import LANGUAGES, catalogue

EVERY_LANGUAGE = pytest.mark.parametrize("language", LANGUAGES)
ATTENTION, MLP = "layers.0.attention", "layers.0.mlp"
# from the article: the first numbers of the rows (steps 2 and 4), its table (step 6), its probabilities (step 9)
ROWS = {"今": [0.1, -0.2, 0.3], "天": [0.4, 0.1, -0.5], "气": [0.2, 0.7, 0.1], "真": [-0.3, 0.5, 0.2]}
TABLE = [[2.3], [0.5, 3.1], [0.1, 2.2, 1.8], [0.2, 1.1, 2.0, 2.5], [0.3, 0.8, 0.9, 1.2, 1.5]]
PROBABILITIES = {"好": 0.85, "棒": 0.10, "差": 0.02}
# the steps of 4.1 and 4.2 by the tensor that each of them makes, with what the article leaves out between them
ORDER = [
    "input_ids", "embedding.output", "embedding.sum", "layers.0.norm1.output", f"{ATTENTION}.q", f"{ATTENTION}.k",
    f"{ATTENTION}.v", f"{ATTENTION}.scores", f"{ATTENTION}.masked_scores", f"{ATTENTION}.weights",
    f"{ATTENTION}.head_output", f"{ATTENTION}.output", "layers.0.residual1", "layers.0.norm2.output", f"{MLP}.up",
    f"{MLP}.activation", f"{MLP}.output", "layers.0.output", "final_norm.output", "logits", "probabilities",
]


def board(state: State) -> list[dict[str, Any]]:
    """The grids of the board in the order in which they stand there."""
    frame = framed("block", state)
    return [frame.data["grids"][item["grid"]] for item in items(frame) if item["type"] == "grid"]


def grid(state: State, tensor: str) -> dict[str, Any]:
    """The largest grid of a tensor: all positions where one of its grids has them."""
    return max((each for each in board(state) if each["tensor"] == tensor), key=lambda each: len(addresses(each)))


def table(state: State, tensor: str) -> Numbers:
    found = grid(state, tensor)
    return decoded(found["baseline"]).reshape(len(found["rows"]), len(found["columns"]))


@pytest.fixture
def today() -> State:
    return reader("block", preset="today")


def test_the_rows_that_the_article_prints(today: State) -> None:
    found = grid(today, "embedding.weight")
    rows = table(today, "embedding.weight")
    for place, head in enumerate(found["rows"]):
        if head["text"] in ROWS:
            assert rows[place, :3].tolist() == ROWS[head["text"]]
    words = [row["text"] for row in grid(today, "embedding.output")["rows"]]
    assert words == ["今", "天", "天", "气", "真"]
    tokens, summed = table(today, "embedding.output"), table(today, "embedding.sum")
    assert tokens.shape == summed.shape == (5, 12)
    assert (tokens[1] == tokens[2]).all()
    assert (summed[1] != summed[2]).any()
    np.testing.assert_allclose(table(today, f"{ATTENTION}.q")[4, :2], [0.8, 0.1], atol=1e-12)


def test_the_table_of_scores_and_its_mask(today: State) -> None:
    scores, masked = table(today, f"{ATTENTION}.scores"), table(today, f"{ATTENTION}.masked_scores")
    for row, printed in enumerate(TABLE):
        np.testing.assert_allclose(scores[row, :row + 1], printed, atol=1e-12)
        np.testing.assert_allclose(masked[row, :row + 1], printed, atol=1e-12)
        assert np.isneginf(masked[row, row + 1:]).all()
    # the article's step 5 stops at the product, before ÷ √12
    np.testing.assert_allclose(table(today, f"{ATTENTION}.dot"), scores * 12 ** 0.5, rtol=1e-12)


def test_real_weights_beside_the_printed_ones(today: State) -> None:
    real = [0.0976, 0.1608, 0.1778, 0.2399, 0.3239]
    np.testing.assert_allclose(table(today, f"{ATTENTION}.weights")[4], real, atol=5e-5)
    np.testing.assert_allclose(table(today, "block.weights")[0], real, atol=5e-5)
    assert table(today, "block.printed_weights")[0].tolist() == [0.1, 0.2, 0.2, 0.25, 0.25]
    assert {grid(today, f"block.{name}")["scale"] for name in ("weights", "printed_weights")} == {"share"}


def test_from_twelve_to_forty_eight_and_back(today: State) -> None:
    shapes = [grid(today, name)["shape"] for name in (f"{MLP}.up", f"{MLP}.activation", f"{MLP}.output")]
    assert shapes == ["[B, T, F] = [1, 5, 48]", "[B, T, F] = [1, 5, 48]", "[B, T, C] = [1, 5, 12]"]


def test_the_probabilities_of_step_nine(today: State) -> None:
    found = grid(today, "probabilities")
    shown = dict(zip([head["text"] for head in found["rows"]], decoded(found["baseline"]), strict=True))
    for word, printed in PROBABILITIES.items():
        assert shown[word] == pytest.approx(printed, abs=1e-9)
    assert grid(today, "logits")["shape"] == "[B, T, V] = [1, 5, 50257]"


def test_the_order_is_the_article_s(today: State) -> None:
    names = [each["tensor"] for each in board(today)]
    # where a tensor is made it follows its sign; where it is read again it may stand once more
    assert [name for name in dict.fromkeys(names) if name in ORDER] == ORDER


@EVERY_LANGUAGE
def test_remarks_on_the_article_stand_on_its_own_example_only(language: str) -> None:
    boards = {
        preset: framed("block", reader("block", preset=preset, language=language)) for preset in presets.NAMES
    }
    words = catalogue(language)
    remarks = [key for key in words if key.startswith("note_block_") and key.endswith("_today")]
    assert len(remarks) > 12
    spoken = {
        preset: "\n".join(part["note"] or "" for part in board.data["layout"]) for preset, board in boards.items()
    }
    for key in remarks:
        # those with sizes in them are checked by their ends
        end = words[key].rpartition("}")[2]
        assert end in spoken["today"], key
        assert end not in spoken["cats"] + spoken["scratch"], key


def test_another_model_has_its_own_block() -> None:
    names = [each["tensor"] for each in board(reader("block", preset="cats"))]
    assert {f"{ATTENTION}.q_rotated", f"{ATTENTION}.k_rotated"} <= {*names}
    assert not {"position_embedding.output", "embedding.sum"} & {*names}
    titles = [part["title"] for part in framed("block", reader("block", preset="cats")).data["layout"]]
    assert not any(title and "step 3: positions" in title for title in titles)
    assert any(title and title.endswith("ReLU") for title in titles)


def test_a_second_layer_starts_from_the_first(today: State) -> None:
    state = reader("block", preset="cats", layer=1)
    assert grid(state, "layers.0.output")["title"] == catalogue("en")["stream_in"]
    assert "layers.1.residual1" in {each["tensor"] for each in board(state)}


@pytest.mark.parametrize("preset", presets.NAMES)
def test_sums_on_the_board_add_up_in_every_architecture(preset: str) -> None:
    settings: list[dict[str, Any]] = [
        {}, *({field: value} for field, values in FIELDS.items() for value in values),
        {"norm_placement": "post", "norm": "layernorm"}, {"norm_placement": "post", "norm": "none"},
        {"norm_placement": "post", "residual": False}, {"norm": "none", "residual": False},
    ]
    for setting in settings:
        for lesson in ("block", "switchboard"):
            state = reader(lesson, preset=preset)
            state.switch(**setting)
            assert sums_that_are_wrong(lesson, state) == [], setting


def sums_that_are_wrong(lesson: str, state: State) -> list[str]:
    """Where a grid, +, a grid, = and a grid stand in a row, the first two have to make the third."""
    frame, wrong = framed(lesson, state), []
    for part in frame.data["layout"]:
        row = part["items"]
        for place in range(len(row) - 4):
            kinds = [(item["type"], item.get("text")) for item in row[place:place + 5]]
            if kinds[1::2] != [("op", "+"), ("op", "=")] or {kind for kind, _ in kinds[::2]} != {"grid"}:
                continue
            if place and row[place - 1].get("text") == "÷":
                continue
            terms = [frame.data["grids"][item["grid"]] for item in row[place:place + 5:2]]
            left, right, total = (decoded(term["baseline"]) for term in terms)
            if len(left) == len(right) == len(total) and not np.allclose(left + right, total, atol=1e-12):
                wrong.append(" ".join(term["tensor"] for term in terms))
    return wrong


def test_an_edit_of_the_printed_scores_moves_the_printed_side_alone(today: State) -> None:
    edit(today, "block.scores", (3,), 1.5)
    now, before = today.trace, today.baseline
    assert now["block.weights"].data[3] == now["block.weights"].data[4]
    assert now[f"{ATTENTION}.weights"].data is before[f"{ATTENTION}.weights"].data


# ---- the pictures

def pictures(state: State) -> list[dict[str, Any]]:
    return [item for item in items(framed("block", state)) if item["type"] == "flow"]


def drawn(preset: str) -> list[str]:
    return [block.id for block in flow.blocks("block", presets.load(preset).config, 0)]


def test_the_boxes_of_both_articles_in_order() -> None:
    """3.7 of the second article with the norms and Wo; `layer_forward` of the first."""
    assert drawn("today") == [
        "ids", "embedding", "positions", "norm1", "qkv", "weights", "context", "projection", "dropout1", "residual1",
        "norm2", "up", "activation", "down", "dropout2", "output", "final_norm", "lm_head", "probabilities",
    ]
    assert drawn("cats") == [
        "ids", "embedding", "norm1", "qkv", "turn", "weights", "context", "projection", "residual1",
        "norm2", "up", "activation", "down", "output", "final_norm", "lm_head", "probabilities",
    ]


def test_boxes_that_differ_are_marked() -> None:
    ours, theirs = pictures(reader("block", preset="today"))
    marked = [[block["id"] for block in picture["blocks"] if block["differs"]] for picture in (ours, theirs)]
    assert marked[0] == ["positions", "norm1", "dropout1", "norm2", "activation", "dropout2", "final_norm", "lm_head"]
    assert marked[1] == ["norm1", "turn", "norm2", "activation", "final_norm", "lm_head"]
    assert [picture["blocks"][1]["shape"] for picture in (ours, theirs)] == [
        "[B, T, C] = [1, 5, 12]", "[B, T, C] = [1, 3, 4]",
    ]


@pytest.mark.parametrize(("preset", "other"), [
    ("cats", "today"), ("today", "cats"), ("scratch", "today"), ("little_world", "today"),
])
def test_the_other_article_stands_beside(preset: str, other: str) -> None:
    titles = [picture["title"] for picture in pictures(reader("block", preset=preset))]
    assert titles == [catalogue("en")[f"preset_{preset}"], catalogue("en")[f"preset_{other}"]]


def test_a_switched_model_says_so_and_shows_it() -> None:
    state = reader("block", preset="today")
    state.switch(norm="rmsnorm", positions="rope", activation="relu", bias=False, tied_head=False)
    ours, theirs = pictures(state)
    assert catalogue("en")["preset_today"] in ours["title"] != catalogue("en")["preset_today"]
    # dropout is all that is left of the difference
    assert [block["id"] for block in ours["blocks"] if block["differs"]] == ["dropout1", "dropout2"]
    assert not any(block["differs"] for block in theirs["blocks"])


@pytest.mark.parametrize("changes", [
    {}, {"norm_placement": "post"}, {"norm": "none"}, {"norm": "none", "norm_placement": "post"}, {"residual": False},
    {"positions": "learned", "max_positions": 8}, {"qk_norm": True}, {"logit_soft_cap": 15.0}, {"tied_head": True},
    {"causal": False}, {"scale_scores": False}, {"activation": "none"},
])
@pytest.mark.parametrize("scope", ["model", "layer", "block"])
def test_pictures_of_every_architecture_are_of_one_piece(scope: str, changes: dict[str, Any]) -> None:
    config = ModelConfig(vocab_size=9, hidden_size=4, layers=2, heads=2, mlp_size=8, **changes)
    blocks = flow.blocks(scope, config, 1)
    ids = [block.id for block in blocks]
    assert len(ids) == len({*ids})
    for place, block in enumerate(blocks):
        assert block.lesson in navigation.LESSONS
        # a branch starts above the box where it is added
        assert block.branch is None or block.branch in ids[:place]
        assert {block.label} <= {*catalogue("en")}
    additions = [block for block in blocks if block.branch]
    assert bool(additions) == config.residual
    normed = [block.id for block in blocks if "norm" in block.id and block.id != "qk_norm"]
    assert bool(normed) == (config.norm != "none")
    if scope == "layer" and changes == {"norm_placement": "post"}:
        assert ids == ["input", "attention", "residual1", "norm1", "mlp", "residual2", "norm2"]
