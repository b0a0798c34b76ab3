"""The rules that the browser highlights by point where the engine's explanations point."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from engine import Tensor, Trace, explain
from tests.ui.support import ARCHITECTURES, EVERY_LESSON, Cell, addresses, framed, reader
from ui import applicability, navigation
from ui.frame import Frame
from ui.state import State


def ids_of(trace: Trace) -> list[int]:
    return [int(token) for token in trace.ids[0]]


def indices(entry: list[Any], out: tuple[int, ...], size: int, ids: list[int], targets: list[int]) -> list[int]:
    """One entry of a rule's map, read as the contract with the browser has it."""
    kind, *rest = entry
    match kind:
        case "axis":
            return [out[rest[0]]]
        case "all":
            return list(range(size))
        case "fixed":
            return [rest[0]]
        case "from":
            return list(range(rest[0], size))
        case "before":
            return list(range(out[rest[0]] + int(rest[1])))
        case "after":
            return list(range(out[rest[0]] + int(not rest[1]), rest[2]))
        case "shift":
            return [out[rest[0]] + rest[1]]
        case "within":
            place = out[rest[0]] - rest[1]
            return [place] if 0 <= place < rest[2] else []
        case "ids":
            return [ids[out[1]]]
        case "target":
            return [targets[out[1]]]
        case "split":
            return [out[rest[0]] * rest[2] + out[rest[1]]]
        case "head":
            return [out[rest[0]] // rest[1]]
        case "feature":
            return [out[rest[0]] % rest[1]]
        case "pair" | "frequency":
            feature, pairing, width = out[rest[0]], rest[1], rest[2]
            pair = feature // 2 if pairing == "interleaved" else feature % (width // 2)
            return [pair] if kind == "frequency" else members(pair, pairing, width)
        case "members":
            return members(out[rest[0]], rest[1], rest[2])
    raise AssertionError(f"the contract does not have {entry}")


def members(pair: int, pairing: str, width: int) -> list[int]:
    return [2 * pair, 2 * pair + 1] if pairing == "interleaved" else [pair, pair + width // 2]


def ruled(frame: Frame, ids: list[int], cell: Cell, known: dict[Cell, frozenset[Cell]]) -> frozenset[Cell]:
    """The nearest shown cells that a cell is made from, by the frame's rules alone."""
    if cell not in known:
        rules, found = frame.data["rules"], set[Cell]()
        for source in rules[cell[0]]["inputs"]:
            name, shape = source["tensor"], rules[source["tensor"]]["shape"]
            axes = [
                indices(entry, cell[1], size, ids, frame.data["targets"])
                for entry, size in zip(source["map"], shape, strict=True)
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


def assert_rules_are_right(lesson: str, state: State, samples: int) -> None:
    frame, trace, ids = framed(lesson, state), state.baseline, ids_of(state.baseline)
    by_rules: dict[Cell, frozenset[Cell]] = {}
    by_terms: dict[tuple[int, tuple[int, ...]], frozenset[Cell]] = {}
    for grid in frame.data["grids"].values():
        cells = addresses(grid)
        for name, index in cells[::max(1, len(cells) // samples)]:
            expected = explained(frame, trace, trace[name], index, by_terms)
            assert ruled(frame, ids, (name, index), by_rules) == expected, (name, index)


@pytest.mark.parametrize(("preset", "pairing"), [
    ("cats", "interleaved"), ("scratch", "interleaved"), ("scratch", "half"),
])
@EVERY_LESSON
def test_rules_point_where_explanations_point(lesson: str, preset: str, pairing: str) -> None:
    sentence = "Cats sit on Cats" if preset == "cats" else "red fox and red"
    # from a step of an optimizer the way leads to every cell of every gradient
    samples = 2 if lesson in navigation.GROUPS["lessons_training"] else 6
    for place in ((0, 1) if preset == "cats" else (int(pairing == "half"),)):
        state = reader(lesson, preset=preset, pairing=pairing, text=sentence, layer=place, head=place)
        assert_rules_are_right(lesson, state, samples)


@pytest.mark.parametrize("switches", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
@pytest.mark.parametrize("lesson", navigation.GROUPS["lessons_cats"])
def test_rules_are_right_for_other_architectures(lesson: str, switches: dict[str, Any]) -> None:
    state = reader(lesson, preset="scratch", text="fox fox red", layer=1, switches=tuple(switches.items()))
    if applicability.applies(lesson, state.model.config):
        assert_rules_are_right(lesson, state, samples=4)


@pytest.mark.parametrize("lesson", ["embedding", "qkv", "scores", "values", "mlp"])
def test_rules_are_right_for_today(lesson: str) -> None:
    assert_rules_are_right(lesson, reader(lesson, preset="today"), samples=4)


def test_a_row_of_the_position_table_by_hand() -> None:
    state = reader("embedding", preset="today")
    frame, ids = framed("embedding", state), list(state.ids)
    assert ruled(frame, ids, ("position_embedding.output", (3, 7)), {}) == {("position_embedding.weight", (3, 7))}
    assert ruled(frame, ids, ("embedding.sum", (0, 1, 2)), {}) == {
        ("embedding.output", (0, 1, 2)), ("position_embedding.output", (1, 2)),
    }


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
