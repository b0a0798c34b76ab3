"""What the browser gets of a lesson's board: real numbers at real addresses, under the right headers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import presets
from tests.ui.support import (
    EVERY_BOARD,
    EVERY_LESSON,
    SENTENCES,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    grids_in,
    items,
    labels_of,
    lessons,
    numbers_at,
    page,
    reader,
    send,
    strictly,
)
from ui import board, flow, frame, navigation, text
from ui.drawing import CONDENSED_ROWS, DENSE_CELLS
from ui.layout import Flow, Grid, Item, Lines, Operator, Optional, Rows, Section, Slider, Stages, Switch, Verdict
from ui.state import State

WQ = "layers.0.attention.Wq"


def views(lesson: str, preset: str, texts: tuple[str, ...]) -> Iterator[State]:
    """A reader of every sentence, the layers and heads by turns."""
    config = presets.load(preset).config
    places = cycle(product(range(config.layers), range(config.heads)))
    for sentence, (layer, head) in zip(texts, places, strict=False):
        yield reader(lesson, preset=preset, text=sentence, layer=layer, head=head)


def test_every_lesson_has_its_page() -> None:
    assert tuple(lessons()) == navigation.LESSONS


@EVERY_BOARD
def test_grids_show_the_trace(lesson: str, preset: str) -> None:
    """Every sentence, layer and head: as many numbers as cells, and each the one of its address."""
    for state in views(lesson, preset, SENTENCES[preset]):
        frame = framed(lesson, state)
        strictly(frame.data)
        for key, grid in frame.data["grids"].items():
            cells = addresses(grid)
            assert len(cells) == len(grid["rows"]) * len(grid["columns"]), (key, grid["tensor"])
            np.testing.assert_array_equal(decoded(grid["baseline"]), numbers_at(state.baseline, cells))
            assert grid["dense"] == (grid.get("small", False) or len(cells) > DENSE_CELLS)
            assert {name for name, _ in cells} <= frame.names


@EVERY_BOARD
def test_everything_in_a_frame_refers_to_something(lesson: str, preset: str) -> None:
    for state in views(lesson, preset, SENTENCES[preset][:3]):
        frame = framed(lesson, state)
        grids, rules, trace = frame.data["grids"], frame.data["rules"], state.baseline
        assert frame.names <= set(rules)
        for name, rule in rules.items():
            assert name.startswith("step ") or rule["shape"] == list(trace[name].shape)
            for source in rule["inputs"]:
                assert len(source["map"]) == len(rules[source["tensor"]]["shape"])
        assert set().union(*map(grids_in, items(frame))) == set(grids)
        for blocks in (item["blocks"] for item in items(frame) if "blocks" in item):
            assert {block["lesson"] for block in blocks} <= set(navigation.LESSONS)
            assert {block["from"] for block in blocks} <= {block["id"] for block in blocks} | {None}
            assert len({block["id"] for block in blocks}) == len(blocks)


TURNED_ROUND = ("attention_linear.other", "attention_linear.held.v.", "attention_linear.held.v_heads.")


@EVERY_BOARD
def test_headers_say_which_cells_they_stand_over(lesson: str, preset: str) -> None:
    for state in views(lesson, preset, SENTENCES[preset][:3]):
        words = [token["text"] for token in framed(lesson, state).data["tokens"]]
        assert words == labels_of(state)
        for grid in framed(lesson, state).data["grids"].values():
            pairs = product(grid["rows"], grid["columns"])
            for (row, column), (name, index) in zip(pairs, addresses(grid), strict=True):
                # the lab's second input is the first with its rows turned round
                turned = any(part in f"{name}." for part in TURNED_ROUND)
                for head, axis in ((row, grid["row_axis"]), (column, grid["column_axis"])):
                    if "sub" in head:
                        assert int(head["sub"]) in index
                    if axis in ("position", "query", "key"):
                        assert head["text"] == (words[::-1] if turned else words)[int(head["sub"])]


@EVERY_LESSON
def test_the_article_s_numbers_are_on_the_board(lesson: str, golden: dict[str, NDArray[Any]]) -> None:
    """Baselines against numbers that other people computed."""
    for layer in (0, 1):
        frame = framed(lesson, reader(lesson, layer=layer))
        for grid in frame.data["grids"].values():
            for number, (name, index) in zip(decoded(grid["baseline"]), addresses(grid), strict=True):
                if name in golden:
                    np.testing.assert_allclose(number, golden[name][index], rtol=0, atol=1e-12)


def test_large_tables_are_condensed_and_say_so() -> None:
    state = reader(rows=(7,))
    grids = framed("embedding", state).data["grids"].values()
    table = next(grid for grid in grids if grid["tensor"] == "embedding.weight")
    # the article prints rows 0, 12, 45, 78 and 255; 7 was asked for
    assert table["row_index"] == [0, 7, 12, 45, 78, 255]
    assert [table["row_index"][row] for row in table["highlight_rows"]] == [12, 45, 78]
    assert table["more_rows"] == {"max": 255}
    grids = framed("lm_head", state).data["grids"].values()
    head = next(grid for grid in grids if grid["tensor"] == "lm_head.weight")
    assert head["row_index"] == [7, 90, 91, 92]
    assert [row["text"] for row in head["rows"]] == ["#7", "mats", "chairs", "volcano"]
    small = framed("embedding", reader(preset="scratch")).data["grids"].values()
    table = next(grid for grid in small if grid["tensor"] == "embedding.weight")
    assert len(table["rows"]) == 16 <= CONDENSED_ROWS
    assert "more_rows" not in table


@pytest.mark.parametrize("size", [1, 31, 32, 33])
def test_used_rows_of_the_sentence_are_always_there(size: int) -> None:
    state = reader(text=" ".join(str(100 + number) for number in range(min(size, 32))))
    grids = framed("embedding", state).data["grids"].values()
    table = next(grid for grid in grids if grid["tensor"] == "embedding.weight")
    assert set(state.ids) <= set(table["row_index"])


def test_queries_are_rows_and_keys_are_columns() -> None:
    """D01, D09, C16: the first token on top, zeros to the upper right, rows sum to 1."""
    grids = framed("scores", reader()).data["grids"].values()
    weights = next(grid for grid in grids if grid["tensor"] == "layers.0.attention.weights")
    assert (weights["row_axis"], weights["column_axis"]) == ("query", "key")
    assert [row["text"] for row in weights["rows"]] == ["Cats", "sit", "on"]
    numbers = decoded(weights["baseline"]).reshape(3, 3)
    np.testing.assert_allclose(numbers.sum(axis=1), 1, rtol=1e-12)
    assert numbers[0].tolist() == [1, 0, 0]
    assert weights["scale"] == "share"


def test_positions_stand_in_rows_and_candidates_in_columns() -> None:
    grids = framed("lm_head", reader()).data["grids"].values()
    (whole,) = (grid for grid in grids if grid["tensor"] == "logits" and len(grid["columns"]) == 3)
    assert (whole["row_axis"], whole["column_axis"]) == ("position", "vocabulary")
    assert [row["text"] for row in whole["rows"]] == ["Cats", "sit", "on"]
    assert [column["text"] for column in whole["columns"]] == ["mats", "chairs", "volcano"]
    assert decoded(whole["baseline"]).reshape(3, 3)[2] == pytest.approx([0.9073, -0.0911, 0], abs=5e-5)


@pytest.mark.parametrize(("rows", "columns"), [
    ("position", "vocabulary"), ("vocabulary", "position"), ("vocabulary", None), (None, "vocabulary"),
])
def test_rows_can_be_asked_for_where_either_axis_is_condensed(rows: str | None, columns: str | None) -> None:
    place = (("position", "last"),) if None in (rows, columns) else ()
    table = Section(None, (Grid("logits", rows, columns, place), Grid("probabilities", rows, columns, place)))
    drawn = frame.build("any", (table,), board.view(reader(rows=(7,)))).data["grids"]
    # one field is enough for the board
    assert [grid.get("more_rows") for grid in drawn.values()] == [{"max": 255}, None]
    headers = "rows" if rows == "vocabulary" else "columns"
    assert [head["text"] for head in drawn["g0"][headers]] == ["#7", "mats", "chairs", "volcano"]
    small = frame.build("any", (table,), board.view(reader(preset="scratch"))).data["grids"]
    assert not any("more_rows" in grid for grid in small.values())


@EVERY_LESSON
def test_a_board_with_a_condensed_table_has_one_field_for_rows(lesson: str) -> None:
    grids = framed(lesson, reader(lesson)).data["grids"].values()
    condensed = [grid for grid in grids if "vocabulary" in (grid["row_axis"], grid["column_axis"])]
    assert sum("more_rows" in grid for grid in grids) == bool(condensed)
    small = framed(lesson, reader(lesson, preset="scratch")).data["grids"].values()
    assert not any("more_rows" in grid for grid in small)


@EVERY_LESSON
def test_shares_are_coloured_from_nothing_to_all(lesson: str) -> None:
    for grid in framed(lesson, reader(lesson)).data["grids"].values():
        low, high = grid["range"]
        assert low < high
        if grid["scale"] == "share":
            assert [low, high] == [0, 1]


def test_a_model_adds_a_sentence_of_its_own_to_a_note() -> None:
    for language in text.LANGUAGES:
        words, own = (text.say(language, key) for key in ("note_rows", "note_rows_cats"))
        readers = (reader(preset=preset, language=language) for preset in ("cats", "scratch"))
        (cats,), (scratch,) = (framed("embedding", each).data["layout"] for each in readers)
        assert (cats["note"], scratch["note"]) == (text.joined(language, (words, own)), words)


def test_repeated_tokens_keep_rows_of_their_own() -> None:
    """C09."""
    grids = framed("scores", reader(text="on sit on")).data["grids"].values()
    weights = next(grid for grid in grids if grid["tensor"] == "layers.0.attention.weights")
    assert [(row["sub"], row["text"]) for row in weights["rows"]] == [("0", "on"), ("1", "sit"), ("2", "on")]


@EVERY_LESSON
def test_no_key_shows_through(lesson: str) -> None:
    """Operators fall back to their own text, so a missing key would be seen by readers."""
    for language in text.LANGUAGES:
        frame = framed(lesson, reader(lesson, language=language))
        for item in items(frame):
            assert not item.get("text", "").startswith("sign_")
        keys = set(text.catalogue(language))
        words = [grid["title"] for grid in frame.data["grids"].values()]
        assert not {word for word in words if "_" in word} & keys


@EVERY_LESSON
def test_both_languages_draw_the_same_board(lesson: str) -> None:
    english, chinese = (framed(lesson, reader(lesson, language=language)).data for language in text.LANGUAGES)
    assert [grid["baseline"] for grid in english["grids"].values()] == [
        grid["baseline"] for grid in chinese["grids"].values()
    ]
    assert [len(part["items"]) for part in english["layout"]] == [
        len(part["items"]) for part in chinese["layout"]
    ]
    assert english["version"] != chinese["version"]


def test_versions_tell_structures_apart() -> None:
    readers = [
        ("scores", reader()), ("scores", reader(layer=1)), ("scores", reader(head=1)),
        ("scores", reader(text="sit on")), ("scores", reader(text="on sit")), ("rope", reader()),
        ("scores", reader(preset="scratch")), ("scores", reader(preset="scratch", seed=2)),
        ("scores", reader(preset="scratch", pairing="half")), ("scores", reader(language="zh")),
        ("lm_head", reader()), ("lm_head", reader(rows=(3,))),
    ]
    versions = {framed(lesson, state).version for lesson, state in readers}
    assert len(versions) == len(readers)


def test_edits_and_selections_leave_the_version_alone() -> None:
    state = reader()
    version = alive("scores", state)["version"]
    edit(state, WQ, (0, 1), 0.5)
    send(state, "select", tensor=WQ, index=[0, 1], trail="start")
    send(state, "mode", value="both")
    send(state, "snapshot", name="mine")
    assert alive("scores", state)["version"] == version == framed("scores", reader()).version


def test_frames_are_shared_by_readers_who_see_the_same() -> None:
    assert framed("scores", reader()) is framed("scores", reader())


def test_pictures_follow_the_configuration() -> None:
    config = presets.load("cats").config
    model = flow.blocks("model", config, 0)
    assert [block.tensor for block in model if block.id.startswith("output")] == [
        "layers.0.output", "layers.1.output",
    ]
    for layer in range(config.layers):
        boxes = {block.id: block for block in flow.blocks("layer", config, layer)}
        # the branch starts before the norm
        assert (boxes["residual1"].branch, boxes["output"].branch) == ("input", "residual1")


def test_the_heads_of_a_model_of_real_size() -> None:
    """The article's picture: 768 features, twelve heads of 64, whatever model is shown."""
    for preset in presets.NAMES:
        (picture,) = (item for item in items(framed("qkv", reader("qkv", preset=preset))) if item["type"] == "heads")
        assert picture == {"type": "heads", "C": 768, "H": 12, "D": 64}


def words_of(item: Item) -> set[str]:
    """The keys that an item names."""
    match item:
        case Optional(inside):
            return set().union(*map(words_of, inside))
        case Grid(title=str(title)) | Stages(title):
            return {title}
        case Slider(label=label) | Switch(label=label):
            return {label}
        case Rows(title, lines, axis):
            return {title, *filter(None, [axis]), *(label for label, _ in lines if "_" in label)}
        case Lines(title, axis=axis):
            return {title, *filter(None, [axis])}
        case Verdict(_, zero, other):
            return {zero, other}
        case Operator(sign) if "_" in sign and " " not in sign:
            return {sign}
        case Flow(scope):
            return {block.label for block in flow.blocks(scope, presets.load("cats").config, 1)}
    return set()


@EVERY_LESSON
def test_words_of_the_layout_are_in_both_catalogues(lesson: str) -> None:
    for part in page(lesson).sections:
        keys = set().union({part.title} - {None}, *map(words_of, part.items))
        for language in text.LANGUAGES:
            known = set(text.catalogue(language))
            assert keys <= known
            # a note may have sentences for some models only
            assert part.note is None or any(key.startswith(part.note) for key in known)
