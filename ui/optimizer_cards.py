"""Lesson 32's card: what one step of each kind does to the loss, every parameter moved at once."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from engine import ConfigError, Edit, Model, Trace, programs, run
from engine.edits import among
from engine.optimizers import KINDS
from engine.plan import LARGE_VOCABULARY
from engine.training import SCOPE
from ui import runs, target_choice
from ui.markup import Markup, card_head, fill, join, tag
from ui.state import State
from ui.staves import token_chip
from ui.switches import Switches
from ui.text import number, percent

LESSON = "optimizer"
# loss and the probability of the last target; none where a number ran over
Outcome = tuple[float, float] | None


def report(state: State) -> None:
    """Draw the card: the loss and the target's probability before the step, and after a step of each kind."""
    with st.container(key="card_optimizer"):
        head = card_head(state.say("step_outcome"), state.say("step_outcome_note"))
        if state.model.config.vocab_size > LARGE_VOCABULARY:
            st.html(join(head, tag("p", state.say("step_outcome_large"), css="card-content")))
            return
        choices = state.choices
        found = outcomes(choices.preset, choices.seed, choices.switches, state.ids, state.target, state.edits)
        st.html(join(head, tag("div", _table(state, found), css="card-content")))


def _table(state: State, found: tuple[Outcome, ...]) -> Markup:
    target = target_choice.chosen(state)
    token = token_chip(state.model, target)
    heads = tag("tr", tag("td"), tag("th", state.say("step_loss"), scope="col"),
                tag("th", state.say("step_loss_change"), scope="col"),
                tag("th", fill(state.say("step_chance"), token=token), scope="col"))
    names = [state.say("step_before"), *(state.say(f"optimizer_{kind}") for kind in KINDS)]
    lines = [_line(state, name, outcome, found[0]) for name, outcome in zip(names, found, strict=True)]
    return tag("table", heads, *lines, css="pairs", aria_label=state.say("step_outcome"))


def _line(state: State, name: str, outcome: Outcome, before: Outcome) -> Markup:
    if outcome is None or before is None:
        return tag("tr", tag("th", name, scope="row"), tag("td", state.say("step_ran_over"), colspan=3))
    change = "" if outcome is before else number(outcome[0] - before[0])
    cells = (number(outcome[0]), change, percent(state.choices.language, outcome[1]))
    return tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells))


@lru_cache(maxsize=64)
def outcomes(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], target: int,
             edits: tuple[Edit, ...]) -> tuple[Outcome, ...]:
    """Before the step, and after one of each kind, edits of anything but parameters in force each time."""
    model, targets = runs.model(preset, seed, switches), [list(runs.targets(preset, seed, ids, target))]
    plain = runs.baseline(preset, seed, switches, ids, LESSON, target=target)
    trace = run(model, [list(ids)], targets=targets, program=programs.of(LESSON), edits=among(edits, plain), base=plain)
    before = run(model, [list(ids)], targets=targets)
    held = tuple(edit for edit in among(edits, before) if before[edit.name].node.operation != "parameter")
    found = [_outcome(trace)]
    for kind in KINDS:
        moved = {name: trace[f"{SCOPE}.{kind}.{name}.updated"].data for name in model.parameters}
        try:
            stepped = Model(model.config, moved, model.tokenizer)
        except ConfigError:  # no finite number any more
            found.append(None)
            continue
        found.append(_outcome(run(stepped, [list(ids)], targets=targets, edits=held)))
    return tuple(found)


def _outcome(trace: Trace) -> Outcome:
    return trace["loss"].number(()), float(trace["loss.target_probability"].data[0, -1])
