"""What the browser gets: real numbers at real addresses, rules that are right, and little of it per edit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Edit, Tensor, Trace, explain, presets, programs, run
from formats.edits import MOST_EDITS
from tests.ui.support import (
    SENTENCES,
    Cell,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    lessons,
    numbers_at,
    reader,
    send,
)
from ui import board, flow, frame, navigation, text
from ui.drawing import CONDENSED_ROWS, DENSE_CELLS
from ui.frame import Frame
from ui.layout import Flow, Grid, Operator, Section, Slider, Stages, Switch
from ui.state import Choices, State
from ui.text import say

LIVE_BYTES = 12_000
SAMPLES = 6
EVERY_LESSON = pytest.mark.parametrize("lesson", navigation.LESSONS)
EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)
WQ = "layers.0.attention.Wq"


def views(preset: str, texts: tuple[str, ...]) -> Iterator[State]:
    """A reader of every sentence at every layer and head."""
    config = presets.load(preset).config
    for sentence, layer, head in product(texts, range(config.layers), range(config.heads)):
        yield reader(preset=preset, text=sentence, layer=layer, head=head)


def items(frame: Frame) -> list[dict[str, Any]]:
    return [item for section in frame.data["layout"] for item in section["items"]]


def strictly(data: dict[str, Any]) -> str:
    return json.dumps(data, allow_nan=False)


def test_every_lesson_has_its_page() -> None:
    assert tuple(lessons()) == navigation.LESSONS


@EVERY_PRESET
@EVERY_LESSON
def test_grids_show_the_trace(lesson: str, preset: str) -> None:
    """Every sentence, layer and head: as many numbers as cells, and each the one of its address."""
    for state in views(preset, SENTENCES[preset]):
        frame = framed(lesson, state)
        strictly(frame.data)
        for key, grid in frame.data["grids"].items():
            cells = addresses(grid)
            assert len(cells) == len(grid["rows"]) * len(grid["columns"]), (key, grid["tensor"])
            np.testing.assert_array_equal(decoded(grid["baseline"]), numbers_at(state.baseline, cells))
            assert grid["dense"] == (len(cells) > DENSE_CELLS)
            assert {name for name, _ in cells} <= frame.names


@EVERY_PRESET
@EVERY_LESSON
def test_everything_in_a_frame_refers_to_something(lesson: str, preset: str) -> None:
    for state in views(preset, SENTENCES[preset][:3]):
        frame = framed(lesson, state)
        grids, rules, trace = frame.data["grids"], frame.data["rules"], state.baseline
        assert frame.names <= set(rules)
        for name, rule in rules.items():
            assert name.startswith("step ") or rule["shape"] == list(trace[name].shape)
            for source in rule["inputs"]:
                assert len(source["map"]) == len(rules[source["tensor"]]["shape"])
        blocks = [block for item in items(frame) for block in item.get("blocks", ())]
        shown = {item["grid"] for item in items(frame) if "grid" in item}
        assert shown | {block["cells"] for block in blocks} == set(grids)
        assert {block["lesson"] for block in blocks} <= set(navigation.LESSONS)
        assert {block["from"] for block in blocks} <= {block["id"] for block in blocks} | {None}
        assert len({block["id"] for block in blocks}) == len(blocks)


@EVERY_PRESET
@EVERY_LESSON
def test_headers_say_which_cells_they_stand_over(lesson: str, preset: str) -> None:
    for state in views(preset, SENTENCES[preset][:3]):
        words = [token["text"] for token in framed(lesson, state).data["tokens"]]
        assert words == state.choices.text.split()
        for grid in framed(lesson, state).data["grids"].values():
            pairs = product(grid["rows"], grid["columns"])
            for (row, column), (_, index) in zip(pairs, addresses(grid), strict=True):
                for head, axis in ((row, grid["row_axis"]), (column, grid["column_axis"])):
                    if "sub" in head:
                        assert int(head["sub"]) in index
                    if axis in ("position", "query", "key"):
                        assert head["text"] == words[int(head["sub"])]


def ids_of(trace: Trace) -> list[int]:
    return [int(token) for token in trace.ids[0]]


def indices(entry: list[Any], out: tuple[int, ...], size: int, ids: list[int]) -> list[int]:
    """One entry of a rule's map, read as the contract with the browser has it."""
    kind, *rest = entry
    match kind:
        case "axis":
            return [out[rest[0]]]
        case "all":
            return list(range(size))
        case "fixed":
            return [rest[0]]
        case "ids":
            return [ids[out[1]]]
        case "split":
            return [out[rest[0]] * rest[2] + out[rest[1]]]
        case "head":
            return [out[rest[0]] // rest[1]]
        case "feature":
            return [out[rest[0]] % rest[1]]
        case "pair" | "frequency":
            feature, pairing, width = out[rest[0]], rest[1], rest[2]
            pair = feature // 2 if pairing == "interleaved" else feature % (width // 2)
            if kind == "frequency":
                return [pair]
            return [2 * pair, 2 * pair + 1] if pairing == "interleaved" else [pair, pair + width // 2]
    raise AssertionError(f"the contract does not have {entry}")


def ruled(frame: Frame, ids: list[int], cell: Cell, known: dict[Cell, frozenset[Cell]]) -> frozenset[Cell]:
    """The nearest shown cells that a cell is made from, by the frame's rules alone."""
    if cell not in known:
        rules, found = frame.data["rules"], set[Cell]()
        for source in rules[cell[0]]["inputs"]:
            name, shape = source["tensor"], rules[source["tensor"]]["shape"]
            axes = [
                indices(entry, cell[1], size, ids) for entry, size in zip(source["map"], shape, strict=True)
            ]
            for index in product(*axes):
                here = (name, index)
                found |= {here} if name in frame.names else ruled(frame, ids, here, known)
        known[cell] = frozenset(found)
    return known[cell]


def explained(
    frame: Frame, trace: Trace, tensor: Tensor, index: tuple[int, ...],
    known: dict[tuple[int, tuple[int, ...]], frozenset[Cell]],
) -> frozenset[Cell]:
    """The same by the engine's explanations."""
    key = (tensor.slot, index)
    if key not in known:
        found = set[Cell]()
        for term in explain(trace, tensor, index).terms:
            if term.tensor.slot == tensor.slot:
                continue  # a leaf is its own term
            if term.name in frame.names:
                found.add((str(term.name), term.index))
            else:
                found |= explained(frame, trace, term.tensor, term.index, known)
        known[key] = frozenset(found)
    return known[key]


@pytest.mark.parametrize(("preset", "pairing"), [
    ("cats", "interleaved"), ("scratch", "interleaved"), ("scratch", "half"),
])
@EVERY_LESSON
def test_rules_point_where_explanations_point(lesson: str, preset: str, pairing: str) -> None:
    sentence = "Cats sit on Cats" if preset == "cats" else "red fox and red"
    for layer, head in ((0, 0), (1, 1)):
        state = reader(preset=preset, pairing=pairing, text=sentence, layer=layer, head=head)
        frame, trace, ids = framed(lesson, state), state.baseline, ids_of(state.baseline)
        by_rules: dict[Cell, frozenset[Cell]] = {}
        by_terms: dict[tuple[int, tuple[int, ...]], frozenset[Cell]] = {}
        for grid in frame.data["grids"].values():
            cells = addresses(grid)
            for name, index in cells[::max(1, len(cells) // SAMPLES)]:
                expected = explained(frame, trace, trace[name], index, by_terms)
                assert ruled(frame, ids, (name, index), by_rules) == expected, (name, index)


def test_a_score_is_made_from_two_rows_by_hand() -> None:
    state = reader()
    frame = framed("scores", state)
    sources = ruled(frame, [12, 45, 78], ("layers.0.attention.dot", (0, 0, 2, 1)), {})
    assert sources == {
        *(("layers.0.attention.q_rotated", (0, 0, 2, feature)) for feature in range(2)),
        *(("layers.0.attention.k_rotated", (0, 0, 1, feature)) for feature in range(2)),
    }


def test_contributions_are_made_from_the_last_position_by_hand() -> None:
    state = reader()
    sources = ruled(framed("lm_head", state), [12, 45, 78], ("contributions", (90, 3)), {})
    assert sources == {("final_norm.output", (0, 2, 3)), ("lm_head.weight", (90, 3))}


@EVERY_LESSON
def test_the_article_s_numbers_are_on_the_board(lesson: str, golden: dict[str, NDArray[Any]]) -> None:
    """Baselines against numbers that other people computed."""
    for layer in (0, 1):
        frame = framed(lesson, reader(layer=layer))
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
    grids = framed(lesson, reader()).data["grids"].values()
    condensed = [grid for grid in grids if "vocabulary" in (grid["row_axis"], grid["column_axis"])]
    assert sum("more_rows" in grid for grid in grids) == bool(condensed)
    assert not any("more_rows" in grid for grid in framed(lesson, reader(preset="scratch")).data["grids"].values())


@EVERY_LESSON
def test_shares_are_coloured_from_nothing_to_all(lesson: str) -> None:
    for grid in framed(lesson, reader()).data["grids"].values():
        low, high = grid["range"]
        assert low < high
        if grid["scale"] == "share":
            assert [low, high] == [0, 1]


def test_a_model_adds_a_sentence_of_its_own_to_a_note() -> None:
    for language in text.LANGUAGES:
        words, own = (text.say(language, key) for key in ("note_rows", "note_rows_cats"))
        readers = (reader(preset=preset, language=language) for preset in ("cats", "scratch"))
        (cats,), (scratch,) = (framed("embedding", each).data["layout"] for each in readers)
        assert (cats["note"], scratch["note"]) == (f"{words} {own}", words)


def test_repeated_tokens_keep_rows_of_their_own() -> None:
    """C09."""
    grids = framed("scores", reader(text="on sit on")).data["grids"].values()
    weights = next(grid for grid in grids if grid["tensor"] == "layers.0.attention.weights")
    assert [(row["sub"], row["text"]) for row in weights["rows"]] == [("0", "on"), ("1", "sit"), ("2", "on")]


@EVERY_LESSON
def test_no_key_shows_through(lesson: str) -> None:
    """Operators fall back to their own text, so a missing key would be seen by readers."""
    for language in text.LANGUAGES:
        frame = framed(lesson, reader(language=language))
        for item in items(frame):
            assert not item.get("text", "").startswith("sign_")
        keys = set(text.catalogue(language))
        words = [grid["title"] for grid in frame.data["grids"].values()]
        assert not {word for word in words if "_" in word} & keys


@EVERY_LESSON
def test_both_languages_draw_the_same_board(lesson: str) -> None:
    english, chinese = (framed(lesson, reader(language=language)).data for language in text.LANGUAGES)
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


EDITS = [
    Edit(WQ, (0, 1), 0.5), Edit("embedding.weight", (78, 0), 0.7), Edit("lm_head.weight", (92, 3), 0.4),
    Edit("layers.0.attention.weights", (0, 0, 2, 1), 0.9), Edit("layers.1.mlp.output", (0, 1, 2), -3.0),
    Edit("sqrt_head_size", (), 1.0), Edit("scaled.factor", (), 8.0), Edit("rope.offset", (), 3.0),
    Edit("lm_head.weight", (200, 3), 0.4),
]


def marked(frame: Frame, data: dict[str, Any]) -> set[tuple[str, tuple[int, ...]]]:
    """The cells that the board marks as edited."""
    return {
        (name, tuple(index)) for key, numbers in data["edited"].items()
        for name, index in (list(addresses(frame.data["grids"][key]))[number] for number in numbers)
    }


def framed_key(lesson: str, state: State, tensor: str) -> str:
    """The key of the grid that shows a tensor."""
    return next(key for key, grid in framed(lesson, state).data["grids"].items() if grid["tensor"] == tensor)


@pytest.mark.parametrize("change", EDITS, ids=str)
@EVERY_LESSON
def test_values_hold_the_grids_that_differ_and_no_others(lesson: str, change: Edit) -> None:
    """Against a run from nothing, by the addresses that the browser has."""
    state = reader()
    edit(state, change.name, change.index, change.value)  # type: ignore[arg-type]
    frame, data = framed(lesson, state), alive(lesson, state)
    full = run(state.model, [list(state.ids)], edits=[change], program=programs.lessons)
    differing = {}
    for key, grid in frame.data["grids"].items():
        numbers = numbers_at(full, addresses(grid))
        if not np.array_equal(numbers, decoded(grid["baseline"]), equal_nan=True):
            differing[key] = numbers
    assert set(data["values"]) == set(differing)
    for key, numbers in differing.items():
        np.testing.assert_array_equal(decoded(data["values"][key]), numbers)
    shown = {cell for grid in frame.data["grids"].values() for cell in addresses(grid)}
    assert marked(frame, data) == {(change.name, change.index)} & shown
    on_board = {key for key, grid in frame.data["grids"].items() if change.name in dict(addresses(grid))}
    assert set(data["edited"]) == on_board


@EVERY_LESSON
def test_nothing_is_sent_of_what_has_not_changed(lesson: str) -> None:
    data = alive(lesson, reader())
    assert data["values"] == {}
    assert data["edited"] == {}
    assert data["session"]
    assert [data[key] for key in ("selected", "editor", "explanation", "message")] == [None] * 4
    assert data["strip"]["first_changed"] is None


@EVERY_PRESET
@EVERY_LESSON
def test_an_edit_sends_little(lesson: str, preset: str) -> None:
    """One edit and one selected cell with its explanation."""
    state = reader(preset=preset)
    edit(state, "embedding.output", (0, 0, 1), 0.123456789)
    send(state, "select", tensor="layers.0.attention.q", index=[0, 0, 1], trail="start")
    data = alive(lesson, state)
    assert data["explanation"]
    assert len(strictly(data).encode()) < LIVE_BYTES


@EVERY_LESSON
def test_numbers_that_ran_over_still_make_strict_json(lesson: str) -> None:
    state = reader()
    edit(state, "layers.0.norm1.weight", (0,), 1e308)
    edit(state, "layers.0.attention.masked_scores", (0, 0, 2, 1), "-inf")
    masked, exponentials = "layers.0.attention.masked_scores", "layers.0.attention.weights.exp"
    for name in ("logits", "probabilities", masked, exponentials):
        index = [0, 0, 2, 1][-len(state.trace[name].shape):]
        send(state, "select", tensor=name, index=index, trail="start")
        assert state.choices.selected == (name, tuple(index))
        strictly(alive(lesson, state))
    assert np.isnan(state.trace["logits"].data).any()


@pytest.mark.parametrize(("index", "rows", "columns"), [
    ((0, 1), [0], [1]), ((), range(4), range(4)), ((2,), [2], range(4)), ((slice(None), 1), range(4), [1]),
    ((-1, 0), [3], [0]), ((slice(1, 3), 0), [1, 2], [0]),
])
def test_edited_cells_as_the_browser_reads_them(
    index: tuple[int | slice, ...], rows: Iterable[int], columns: Iterable[int]
) -> None:
    state = reader()
    state.commit((Edit(WQ, index, 0.5),))
    marks = marked(framed("qkv", state), alive("qkv", state))
    assert marks == {(WQ, cell) for cell in product(rows, columns)}


def test_marks_of_an_edit_beyond_the_sentence() -> None:
    state = reader(text="Cats sit on")
    state.commit((Edit("layers.0.attention.q", (0, 2), 0.5),))
    send(state, "text", value="Cats sit")
    assert alive("qkv", state)["edited"] == {framed_key("qkv", state, "layers.0.attention.q"): []}


def test_marks_of_many_wide_edits_stay_as_small_as_the_board() -> None:
    state = reader()
    state.commit(tuple(
        Edit("embedding.weight", (slice(number % 250, 256), slice(number // 250, 4)), 1.0 + number)
        for number in range(MOST_EDITS)
    ))
    assert len(state.edits) == MOST_EDITS
    frame, data = framed("embedding", state), alive("embedding", state)
    shown = {cell for grid in frame.data["grids"].values() for cell in addresses(grid)}
    assert marked(frame, data) == {cell for cell in shown if cell[0] == "embedding.weight"}
    assert len(strictly(alive("embedding", state))) < 4 * LIVE_BYTES


def test_the_strip_before_and_after(golden: dict[str, NDArray[Any]]) -> None:
    state = reader()
    candidates = {token["text"]: token for token in alive("overview", state)["strip"]["candidates"]}
    assert list(candidates) == ["mats", "chairs", "volcano"]
    for token_id, word in ((90, "mats"), (91, "chairs"), (92, "volcano")):
        assert candidates[word]["id"] == token_id
        assert candidates[word]["top"] == (word == "mats")
        for key, tensor in (("logit", "logits"), ("probability", "probabilities")):
            assert candidates[word][key] == pytest.approx(golden[tensor][0, 2, token_id], abs=1e-12)
    edit(state, "lm_head.weight", (92, 3), 2.0)
    strip = alive("overview", state)["strip"]
    assert strip["first_changed"] == "logits"
    after = {token["text"]: token for token in strip["candidates"]}
    # volcano's row is zero but for c3, where the article's vector has 1.7522
    assert after["volcano"]["logit"] == pytest.approx(2 * 1.7522, abs=1e-4)
    assert after["volcano"]["top"]
    assert not after["mats"]["top"]
    assert after["volcano"]["baseline_logit"] == 0
    assert after["mats"]["baseline_logit"] == candidates["mats"]["logit"]
    assert (strip["edits"], strip["can_undo"], strip["can_redo"]) == (1, True, False)


@pytest.mark.parametrize(("change", "first"), [
    (Edit(WQ, (0, 1), 0.5), "layers.0.attention.q"),
    (Edit("embedding.weight", (12, 0), 9.0), "embedding.output"),
    (Edit("embedding.weight", (200, 0), 9.0), None),
    (Edit("layers.1.output", (0, 2, 0), 9.0), "layers.1.output"),
    (Edit("scaled.factor", (), 2.0), "scaled.stream"),
    (Edit("norm_epsilon", (), 0.5), "layers.0.norm1.rms"),
])
def test_the_first_tensor_that_changed(change: Edit, first: str | None) -> None:
    state = State(Choices(), [(), (change,)], 1)
    assert alive("overview", state)["strip"]["first_changed"] == first


def test_the_strip_of_a_random_model_ranks_its_own_tokens() -> None:
    state = reader(preset="scratch")
    logits = state.trace["logits"].data[0, -1]
    ranked = sorted(range(16), key=lambda token: -logits[token])[:3]
    assert [token["id"] for token in alive("overview", state)["strip"]["candidates"]] == ranked


def test_the_editor_of_parameters_overrides_and_leaves() -> None:
    state = reader()
    edit(state, "layers.0.attention.q", (0, 2, 0), 9.0)
    wanted: dict[Cell, dict[str, Any]] = {
        ("layers.0.attention.q", (0, 2, 0)): {
            "edited": True, "tensor_edited": True, "value": 9.0, "kind": "computed", "title": "L1·q[on, c0]",
        },
        ("layers.0.attention.q", (0, 2, 1)): {"edited": False, "tensor_edited": True, "kind": "computed"},
        ("layers.1.attention.q", (0, 2, 1)): {"edited": False, "tensor_edited": False, "title": "L2·q[on, c1]"},
        (WQ, (0, 0)): {"edited": False, "tensor_edited": False, "value": 1.0, "baseline": 1.0, "computed": None,
                       "kind": "parameter"},
        ("input_ids", (0, 1)): {"editable": False, "value": 45.0},
        ("layers.0.attention.masked_scores", (0, 0, 0, 1)): {"value": "-inf", "minus_infinity": True},
        ("causal_mask", (0, 1)): {"value": "-inf", "minus_infinity": True, "editable": True},
    }
    for (name, index), expected in wanted.items():
        send(state, "select", tensor=name, index=list(index), trail="start")
        editor = alive("qkv", state)["editor"]
        assert {key: editor[key] for key in expected} == expected, name
    send(state, "select", tensor="layers.0.attention.q", index=[0, 2, 0], trail="start")
    # Wq is the identity: q is norm1's output, 0.2981 in the article
    assert alive("qkv", state)["editor"]["computed"] == pytest.approx(0.2981, abs=5e-5)


def test_the_editor_of_a_cell_under_a_wider_edit() -> None:
    state = State(Choices(), [(), (Edit(WQ, (0,), 5.0),)], 1)
    for index, covered in (((0, 3), True), ((1, 3), False)):
        send(state, "select", tensor=WQ, index=list(index), trail="start")
        editor = alive("qkv", state)["editor"]
        assert (editor["edited"], editor["tensor_edited"]) == (covered, True)


def test_ties_are_counted() -> None:
    state = reader()
    # volcano and the 253 rows without a word have logit 0
    assert [token["tied"] for token in alive("overview", state)["strip"]["candidates"]] == [1, 1, 254]
    for column in range(3):
        edit(state, "lm_head.weight", (90, column), 0.0)
    edit(state, "lm_head.weight", (92, 3), 0.3)
    after = {token["text"]: token for token in alive("overview", state)["strip"]["candidates"]}
    assert after["mats"]["logit"] == after["volcano"]["logit"] != 0
    assert (after["mats"]["tied"], after["volcano"]["tied"], after["chairs"]["tied"]) == (2, 2, 1)


@pytest.mark.parametrize("language", text.LANGUAGES)
def test_a_softmax_with_nothing_to_share_out_is_mentioned(language: str) -> None:
    state = reader(language=language)
    words = text.say(language, "explain_empty_row")
    edit(state, "layers.1.attention.masked_scores", (0, 1, 0, 0), "-inf")
    assert alive("qkv", state)["message"] == {"kind": "info", "text": words}
    edit(state, WQ, (0, 1), float("nan"))
    assert state.message is not None
    assert alive("qkv", state)["message"] == {"kind": state.message[0], "text": state.message[1]}
    send(state, "dismiss")
    assert alive("qkv", state)["message"] == {"kind": "info", "text": words}
    send(state, "undo")
    assert alive("qkv", state)["message"] is None
    edit(state, "layers.0.attention.masked_scores", (0, 1, 1, 0), "-inf")
    assert alive("qkv", state)["message"] is None


@pytest.mark.parametrize("language", text.LANGUAGES)
@pytest.mark.parametrize(("tensor", "index", "value", "first"), [
    ("layers.0.norm1.weight", (0,), 1e308, "layers.0.attention.dot"),
    ("layers.0.norm1.rms", (0, 1), 0.0, "layers.0.norm1.normalized"),
    ("layers.1.norm2.rms", (0, 0), 0.0, "layers.1.norm2.normalized"),
    ("lm_head.weight", (92, 3), 1.7e308, "logits"),
])
def test_numbers_that_ran_over_are_mentioned_by_the_first_of_them(
    tensor: str, index: tuple[int, ...], value: float, first: str, language: str
) -> None:
    state = reader(language=language)
    edit(state, "layers.0.attention.masked_scores", (0, 0, 2, 1), "-inf")
    assert alive("qkv", state)["message"] is None
    edit(state, tensor, index, value)
    message = alive("qkv", state)["message"]
    assert not np.isfinite(state.trace["logits"].data).all()
    assert message == {"kind": "error", "text": text.say(language, "not_finite_now", name=first)}
    send(state, "undo")
    assert alive("qkv", state)["message"] is None


def test_neighbours_run_from_the_first_lesson_to_the_last() -> None:
    ways = [navigation.neighbours(lesson, "en") for lesson in navigation.LESSONS]
    assert ways[0]["previous"] is None
    assert ways[-1]["next"] is None
    assert [way["next"]["lesson"] for way in ways[:-1]] == list(navigation.LESSONS[1:])
    assert [way["previous"]["lesson"] for way in ways[1:]] == list(navigation.LESSONS[:-1])


def test_frames_are_shared_by_readers_who_see_the_same() -> None:
    assert framed("scores", reader()) is framed("scores", reader())


def test_live_data_of_one_reader_is_not_shared_with_another() -> None:
    first, second = reader(), reader()
    edit(first, WQ, (0, 1), 0.5)
    alive("qkv", first)
    assert alive("qkv", second)["values"] == {}


@EVERY_PRESET
def test_charts_show_the_trace(preset: str) -> None:
    for name, lesson in lessons().items():
        if lesson.chart is None:
            continue
        state = reader(preset=preset)
        edit(state, WQ, (0, 1), 0.5)
        figure = lesson.chart(state)
        strictly(figure)
        assert figure["data"], name
        assert "-0.0000" not in strictly(figure)


def test_bars_show_the_logits_of_the_article() -> None:
    chart = lessons()["lm_head"].chart
    assert chart is not None
    bars = chart(reader())["data"][0]
    assert bars["y"] == ["mats · 90", "chairs · 91", "volcano · 92"]
    assert bars["x"] == pytest.approx([0.9073, -0.0911, 0.0], abs=5e-5)
    assert bars["text"] == ["0.9073", "−0.0911", "0.0000"]


def test_the_rope_plane_turns_on_from_one_point_to_the_other() -> None:
    """Article: Q_on [0.2981, 0.5963] → [−0.6663, 0.0230]."""
    chart = lessons()["rope"].chart
    assert chart is not None
    before, after, *_ = chart(reader())["data"]
    assert (before["x"][7], before["y"][7]) == pytest.approx((0.2981, 0.5963), abs=5e-5)
    assert (after["x"][7], after["y"][7]) == pytest.approx((-0.6663, 0.0230), abs=5e-5)


@pytest.mark.parametrize(("pairing", "pairs"), [("interleaved", [(0, 1), (2, 3)]), ("half", [(0, 2), (1, 3)])])
def test_the_rope_plane_has_every_pair(pairing: str, pairs: list[tuple[int, int]]) -> None:
    chart = lessons()["rope"].chart
    assert chart is not None
    state = reader(preset="scratch", pairing=pairing, head=1, layer=1)
    figure = chart(state)
    arrows = [(series["xaxis"], series["yaxis"]) for series in figure["data"]]
    assert arrows == [("x", "y")] * 5 + [("x2", "y2")] * 5
    for number, (first, second) in enumerate(pairs):
        suffix = "2" if number else ""
        assert figure["layout"][f"xaxis{suffix}"]["title"]["text"] == f"d{first}"
        assert figure["layout"][f"yaxis{suffix}"]["title"]["text"] == f"d{second}"
        drawn = iter(figure["data"][5 * number:])
        for letter in "qk":
            for stage in ("heads", "rotated"):
                points = state.trace[f"layers.1.attention.{letter}_{stage}"].data[0, 1]
                series = next(drawn)
                assert series["x"][1::3] == points[:, first].tolist()
                assert series["y"][1::3] == points[:, second].tolist()
        names, turned = next(drawn), state.trace["layers.1.attention.q_rotated"].data[0, 1]
        assert names["text"] == [state.model.tokenizer.label(token) for token in state.ids]  # type: ignore[union-attr]
        assert (names["x"], names["y"]) == (turned[:, first].tolist(), turned[:, second].tolist())
    domains = [figure["layout"][axis]["domain"] for axis in ("xaxis", "xaxis2")]
    assert 0 <= domains[0][0] < domains[0][1] < domains[1][0] < domains[1][1] <= 1


@EVERY_PRESET
def test_charts_survive_numbers_that_ran_over(preset: str) -> None:
    state = reader(preset=preset)
    edit(state, "layers.0.norm1.weight", (0,), 1e308)
    for lesson in lessons().values():
        if lesson.chart is not None:
            strictly(lesson.chart(state))


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


def test_words_of_the_layout_are_in_both_catalogues() -> None:
    keys = set[str]()
    for lesson in lessons().values():
        for section in lesson.sections:
            keys |= {key for key in (section.title, section.note) if key}
            for item in section.items:
                match item:
                    case Grid(title=str(title)) | Stages(title):
                        keys.add(title)
                    case Slider(label=label) | Switch(label=label):
                        keys.add(label)
                    case Operator(sign) if "_" in sign:
                        keys.add(sign)
                    case Flow(scope):
                        keys |= {block.label for block in flow.blocks(scope, presets.load("cats").config, 1)}
    for language in text.LANGUAGES:
        assert keys <= set(text.catalogue(language))


def test_a_number_that_ran_over_is_named_even_where_the_logits_stay_finite() -> None:
    state = reader()
    edit(state, "layers.1.mlp.output", (0, 2, 0), 1e300)
    assert np.isfinite(state.trace["logits"].data).all()
    message = alive("lm_head", state)["message"]
    assert message == {"kind": "error", "text": say("en", "not_finite_now", name="final_norm.mean_square")}


def test_what_was_dismissed_stays_away_but_an_outcome_is_always_said() -> None:
    state = reader()
    edit(state, "sqrt_head_size", (), 0.0)
    shown = alive("scores", state)["message"]
    send(state, "dismiss", text=shown["text"])
    assert alive("scores", state)["message"] is None
    for _ in range(2):
        edit(state, WQ, (0, 0), "nan")
        refused = alive("scores", state)["message"]
        assert refused["kind"] == "error"
        send(state, "dismiss", text=refused["text"])
