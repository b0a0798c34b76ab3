"""What the chosen token loses or gains without each head: one run a head, on top of the reader's edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isfinite
from types import MappingProxyType
from typing import Any

from engine import Edit, ModelConfig, Trace, run
from engine.edits import Mean, among
from engine.programs.heads import BY_QUERY
from engine.programs.question import Question
from engine.removal import Head, removal
from engine.sampling import leading
from ui import naming, runs, token_choice, word_choice
from ui.controls import REMOVED_TO
from ui.layout import Line, Say, grid
from ui.operands import finite
from ui.state import State
from ui.switches import Switches
from ui.text import number, percent

LESSON = "heads"
ZERO = REMOVED_TO[0]
COLUMNS = ("head", "logit", "lead", "probability", "leader", "ways")


@dataclass(frozen=True)
class Outcome:
    """At the last position: the chosen token's logit, its lead over the rival's, its probability; who comes first."""

    logit: float
    lead: float
    probability: float
    leader: int


def panel(state: State) -> None:
    """The choice of the token and its rival, and of what a head is set to."""
    token_choice.panel(state)
    word_choice.buttons(state, "removed_to", "choose_removed_to", REMOVED_TO,
                        lambda word: state.say(f"removed_to_{word}"))


def data(state: State) -> dict[str, Any] | None:
    """The heads in order of how far the chosen token's logit moves without them; nothing on other pages."""
    if state.lesson != LESSON:
        return None
    choices, question = state.choices, state.question
    before, without = outcomes(choices.preset, choices.seed, choices.switches, state.ids, state.edits, question,
                               str(state.control("removed_to")))
    moved = {head: after.logit - before.logit for head, after in without.items()}
    named = {name: naming.token_label(state.model, getattr(question, name)) for name in ("token", "rival")}
    caption = "ranking_caption_edited" if state.active(state.edits) else "ranking_caption"
    return {
        "caption": state.say(caption, **named, logit=number(before.logit), lead=number(before.lead)),
        "columns": [state.say(f"ranking_{name}", **named) for name in COLUMNS],
        "before": percent(choices.language, before.probability),
        "largest": max(map(_size, moved.values())),
        "rows": [
            {
                "label": state.say("part_head", layer=head.layer + 1, head=head.head), "layer": head.layer,
                "head": head.head, "logit": finite(moved[head]), "lead": finite(without[head].lead - before.lead),
                "probability": percent(choices.language, without[head].probability),
                "leader": naming.token_label(state.model, without[head].leader),
            }
            for head in sorted(moved, key=lambda head: _size(moved[head]), reverse=True)
        ],
    }


def _size(change: float) -> float:
    """How far a logit moved; a number that ran over says nothing."""
    return abs(change) if isfinite(change) else 0.0


def summary(config: ModelConfig, say: Say) -> Iterator[Line]:
    """A line for each head: where its weights lie, as means over the queries."""
    for layer, head in _places(config):
        yield say("part_head", layer=layer + 1, head=head), tuple(
            grid(f"heads.{layer}.mean_{name}", head=head) for name in BY_QUERY
        )


def _places(config: ModelConfig) -> Iterator[tuple[int, int]]:
    return product(range(config.layers), range(config.heads))


@lru_cache(maxsize=256)
def outcomes(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], edits: tuple[Edit, ...],
             question: Question, removed_to: str) -> tuple[Outcome, Mapping[Head, Outcome]]:
    """With all heads in place, and without one after the other. Edits of what lessons add are left aside."""
    model = runs.model(preset, seed, switches)
    plain = run(model, [list(ids)])
    here = among(edits, plain)
    base = run(model, [list(ids)], edits=here, base=plain)
    value = 0.0 if removed_to == ZERO else Mean()
    heads = (Head(*place) for place in _places(model.config))
    return _outcome(base, question), MappingProxyType({
        head: _outcome(run(model, [list(ids)], edits=(*here, *removal(head, model.config, value)), base=base), question)
        for head in heads
    })


def _outcome(trace: Trace, question: Question) -> Outcome:
    last = trace.ids.shape[1] - 1
    logits, probabilities = (trace[name].row(0, last) for name in ("logits", "probabilities"))
    logit = float(logits[question.token])
    lead = logit - float(logits[question.rival])
    return Outcome(logit, lead, float(probabilities[question.token]), leading(logits, 1)[0])
