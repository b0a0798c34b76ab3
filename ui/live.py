"""The board's live part: what an edit, a selection or a mode changes. Small, and sent at each event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from engine import Tensor, Trace, presets
from engine.edits import MASKS, covers, is_mask
from engine.sampling import leading
from engine.types import Array, Index
from ui import courses, glosses, handing_out, head_effects, hiding, naming, removal
from ui.address import address, is_cell
from ui.explanation import explanation
from ui.frame import Frame, tokens
from ui.operands import finite
from ui.state import State
from ui.text import LANGUAGE_NAMES, LANGUAGES, listed
from ui.view import decode, encode

SHOWN_CANDIDATES = 3


def build(state: State, frame: Frame, neighbours: dict[str, Any]) -> dict[str, Any]:
    """The live data of a board; `neighbours` are the previous and the next lesson."""
    trace, baseline = state.trace, state.baseline
    # another page or architecture may lack cells on the way by which the reader came
    state.trail = [cell for cell in state.trail if is_cell(trace, *cell)]
    chosen = state.choices.selected
    selected = chosen if chosen is not None and is_cell(trace, *chosen) else None
    return {
        "version": frame.version,
        "seq": state.seq,
        "session": state.session,
        "values": _changed(frame, trace, baseline),
        "edited": _edited(frame, state, trace),
        "names": _names(frame, state, trace, baseline),
        "mode": state.choices.mode,
        "selected": None if selected is None else {"tensor": selected[0], "index": list(selected[1])},
        "editor": None if selected is None or state.hides("editing") else _editor(state, *selected),
        "explanation": None if selected is None or state.hides("explanation") else explanation(state, *selected),
        "strip": {**_strip(state, frame, trace, baseline), **neighbours},
        "presenting": state.choices.presenting,
        "hidden": sorted(hiding.spread(state.choices.hidden)),
        "hand_out": handing_out.data(state),
        "message": _message(state, trace, baseline),
        "removal": removal.data(state),
        "ranking": head_effects.data(state),
        "address": address(state),
        **courses.live(state),
    }


def _changed(frame: Frame, trace: Trace, baseline: Trace) -> dict[str, str]:
    """The numbers of the grids that differ from the baseline."""
    changed = {}
    for grid in frame.grids:
        if grid.shares_arrays(trace, baseline):
            continue
        numbers = grid.numbers(trace)
        # the frame has those of the baseline: over a large vocabulary they take as long as the others
        if not np.array_equal(numbers, decode(frame.data["grids"][grid.key]["baseline"]), equal_nan=True):
            changed[grid.key] = encode(numbers)
    return changed


def _editor(state: State, name: str, index: Index) -> dict[str, Any]:
    """The selected cell as the slider and the number field need it."""
    tensor = state.trace[name]
    covered = any(edit.name == name and covers(edit, index, tensor.shape) for edit in state.edits)
    return {
        "tensor": name, "index": list(index),
        "title": naming.cell_title(state.model, state.ids, tensor, name, index),
        "value": finite(tensor.number(index)),
        "baseline": finite(state.baseline[name].number(index)),
        "computed": finite(tensor.inputs[0].number(index)) if tensor.overridden else None,
        "range": naming.limits(name), "integer": naming.is_whole(name), "edited": covered,
        "tensor_edited": any(edit.name == name for edit in state.edits),
        "editable": tensor.op != "ids",
        "kind": "computed" if tensor.node.kernel is not None else "parameter",
        "minus_infinity": is_mask(name),
    }


def _edited(frame: Frame, state: State, trace: Trace) -> dict[str, list[int]]:
    """The cells of each grid that an edit covers, by their number in the grid."""
    covered: dict[str, Array] = {}
    for edit in state.edits:
        # a tied head is edited under either name, and drawn under the embedding's
        name = str(trace[edit.name].name) if edit.name in trace else edit.name
        if name in frame.names:
            mask = covered.setdefault(name, np.zeros(trace[name].shape, dtype=bool))
            with suppress(IndexError):  # beyond a sentence that is shorter now
                mask[edit.index] = True
    return {grid.key: np.flatnonzero(grid.covered(covered)).tolist() for grid in frame.grids
            if any(name in covered for name, _ in grid.parts)}


def _names(frame: Frame, state: State, trace: Trace, baseline: Trace) -> dict[int, str]:
    """The tokens whose ids stand in the grids, by id."""
    ids = {
        token for grid in frame.grids for name, (_, flat) in grid.by_tensor.items() if naming.is_token(name)
        for run in (trace, baseline) for token in run[name].take(flat).tolist()
    }
    return {int(token): naming.token_label(state.model, int(token)) for token in sorted(ids)}


def _message(state: State, trace: Trace, baseline: Trace) -> dict[str, str] | None:
    """What the reader should know: the outcome of the last event, else what is odd about the numbers."""
    if state.message is not None:
        return {"kind": state.message[0], "text": state.message[1]}
    kind, words = _oddity(state, trace, baseline)
    return {"kind": kind, "text": words} if words and words != state.dismissed else None


def _oddity(state: State, trace: Trace, baseline: Trace) -> tuple[str, str]:
    """A number that ran over, or a row that reads nothing; no words where all is well."""
    last = len(state.ids) - 1
    odd = next((
        tensor.name for tensor in _changed_tensors(trace, baseline)
        if not _is_sound(str(tensor.name), _looked_at(tensor, last))
    ), None)
    if odd is not None:
        return "error", state.say("not_finite_now", name=odd)
    sums = (trace[f"layers.{layer}.attention.weights.sum"].data for layer in range(state.model.config.layers))
    return "info", "" if all(total.all() for total in sums) else state.say("explain_empty_row")


def _looked_at(tensor: Tensor, last: int) -> Array:
    """All numbers; over a large vocabulary those of the last position, which the prediction is read from."""
    return np.zeros(0) if tensor.is_deferred and tensor.axes[:2] != ("batch", "position") else _compared(tensor, last)


def _changed_tensors(trace: Trace, baseline: Trace) -> Iterator[Tensor]:
    """The computed tensors that a run did not take over from the baseline, in order of computation."""
    return (
        tensor for tensor, before in zip(trace.values(), baseline.values(), strict=True)
        if tensor.node.kernel is not None and not tensor.shares(before)
    )


def _is_sound(name: str, numbers: Array) -> bool:
    """Whether all numbers are finite; −∞ belongs in masks and in what softmax makes of them."""
    finite_cells = np.isfinite(numbers)
    if finite_cells.all():
        return True
    is_cut = naming.differentiated(name) is None and name.endswith((*MASKS, ".shifted", *naming.CUT))
    return is_cut and bool((finite_cells | np.isneginf(numbers)).all())


def _strip(state: State, frame: Frame, trace: Trace, baseline: Trace) -> dict[str, Any]:
    choices, config = state.choices, state.model.config
    words = state.model.tokenizer.words.values() if state.model.tokenizer else ()
    return {
        "tokens": tokens(state.model, state.ids, choices.preset, choices.language), "text": state.draft or choices.text,
        "text_error": state.text_error,
        "text_hint": state.say("text_hint", words=listed(choices.language, words), last=config.vocab_size - 1),
        "candidates": _candidates(state, trace, baseline),
        # a lesson that chooses a token has other probabilities on its board
        "share_note": state.say("share_before_choosing") if "choosing.temperature" in trace else "",
        "edits": len(state.edits), "switched": bool(choices.switches), "can_undo": state.cursor > 0,
        "can_redo": state.cursor < len(state.history) - 1,
        "first_changed": _first_changed(trace, baseline, len(state.ids) - 1),
        "snapshots": list(state.snapshots),
        "layer": {"value": choices.layer, "count": config.layers} if frame.uses_layer else None,
        "head": {"value": choices.head, "count": config.heads} if frame.uses_head else None,
        "language": choices.language,
        "other_language": LANGUAGE_NAMES[LANGUAGES[LANGUAGES.index(choices.language) - 1]],
    }


def _candidates(state: State, trace: Trace, baseline: Trace) -> list[dict[str, Any]]:
    """The leading next tokens before and after, and the preset's own candidates."""
    (now, before), (odds, odds_before) = (
        _last_rows(trace[name], baseline[name], len(state.ids) - 1) for name in ("logits", "probabilities")
    )
    ranked = leading(now, SHOWN_CANDIDATES)
    leader = ranked[0]
    named = list(presets.CANDIDATES[state.choices.preset])
    shown = list(dict.fromkeys([leader, *leading(before, 1), *named, *ranked]))
    preset, language = state.choices.preset, state.choices.language
    return [
        {
            "id": token, "text": (label := naming.token_label(state.model, token)), "top": token == leader,
            **glosses.under(preset, language, label),
            "tied": int(np.sum(now == now[token])), "logit": finite(float(now[token])),
            "probability": finite(float(odds[token])),
            "baseline_logit": finite(float(before[token])),
            "baseline_probability": finite(float(odds_before[token])),
        }
        for token in shown[:max(SHOWN_CANDIDATES, len(named))]
    ]


def _last_rows(now: Tensor, before: Tensor, last: int) -> tuple[Array, Array]:
    """The last position's row of both runs; what they share is not computed for the second."""
    row = before.row(0, last)
    return (row if now.shares(before) else now.row(0, last)), row


def _first_changed(trace: Trace, baseline: Trace, last: int) -> str | None:
    """The first computed tensor, in order of computation, that differs from the baseline."""
    for tensor in _changed_tensors(trace, baseline):
        now, before = (_compared(each, last) for each in (tensor, baseline[str(tensor.name)]))
        # the numbers of its other positions are not made, so an edit of one of them counts by itself
        if (tensor.is_deferred and tensor.overridden) or not np.array_equal(now, before, equal_nan=True):
            return tensor.name
    return None


def _compared(tensor: Tensor, last: int) -> Array:
    """All numbers; over a large vocabulary and many positions those of the last one."""
    is_by_position = tensor.is_deferred and tensor.axes[:2] == ("batch", "position")
    return tensor.row(0, last) if is_by_position else tensor.data
