"""Lesson 21's cards: the text that grows, the buttons of the loop, and what a step costs with a cache and without."""

from __future__ import annotations

from time import monotonic

import streamlit as st

from engine.programs.generating import MOST_STEPS
from ui import generation
from ui.generation import Turn
from ui.markup import Markup, card_head, fill, join, scrolling, tag
from ui.state import State, current
from ui.staves import token_chip
from ui.text import number, percent

# between two tokens while the loop plays by itself
PAUSE_SECONDS = 1.2
# a timer may fire a little early
EARLY_SECONDS = 0.2
# what two orders of adding the same numbers may differ by
ROUNDING = 1e-12
RARE = 0.00005


def play(state: State) -> None:
    """Let the loop run on, a token at a time: a timer in the browser asks for the next, and no one waits for it."""
    if state.due is None:
        return
    state.due = monotonic() + PAUSE_SECONDS
    st.fragment(_tick, run_every=PAUSE_SECONDS)()


def _tick() -> None:
    state = current()
    # the page that starts the timer runs this as well
    if state.due is None or monotonic() < state.due - EARLY_SECONDS:
        return
    _go_to(state.steps + 1)
    if state.steps == MOST_STEPS:
        state.due = None
    st.rerun(scope="app")


def show(state: State) -> None:
    """Draw both cards."""
    turns = list(generation.turns(state.continuation, state.steps + 1))
    with st.container(key="card_loop"):
        text = _panel(_text(state, turns[-1]), _status(state, turns[-1]))
        st.html(join(_title(state, "loop_text", "loop_text_note"), text))
        if not state.hides("controls"):
            _buttons(state)
    with st.container(key="card_cost"):
        note = "loop_cost_note_end" if state.steps >= MOST_STEPS else "loop_cost_note"
        st.html(join(_title(state, "loop_cost", note), _panel(
            scrolling(state.say("loop_cost"), _table(state, turns), "loop-table"), *_conclusions(state, turns),
        )))


def _title(state: State, title: str, note: str) -> Markup:
    return card_head(state.say(title), state.say(note))


def _panel(*content: Markup) -> Markup:
    return tag("div", *content, css="card-content")


# ---- the text

def _text(state: State, now: Turn) -> Markup:
    """All tokens so far: the reader's own, then those that the loop appended; what the window left behind is marked."""
    prompt = len(now.text) - state.steps
    chips = [
        tag("span", token_chip(state.model, token, "new" if place >= prompt else ""),
            css="" if place in now.window else "loop-outside")
        for place, token in enumerate(now.text)
    ]
    return tag("div", *chips, css="loop-text", aria_label=state.say("loop_text"), role="group")


def _status(state: State, now: Turn) -> Markup:
    """Where the loop stands, and what its next step appends."""
    at_end = state.steps >= MOST_STEPS
    said = fill(
        state.say("loop_ends" if at_end else "loop_status"), steps=str(state.steps), most=str(MOST_STEPS),
        count=str(len(now.window)), u=number(now.u), token=token_chip(state.model, now.token),
        probability=_likely(state, now),
    )
    slid = fill(state.say("loop_window"), first=str(now.window.start), last=str(now.window.stop - 1))
    return tag("p", said, *([" ", slid] if now.window.start else []), css="card-status", role="status")


def _buttons(state: State) -> None:
    """To the start, one back, one on, and the loop on its own or standing still."""
    steps, plays = state.steps, state.due is not None
    ways = (("loop_first", 0), ("loop_back", steps - 1), ("loop_step", steps + 1))
    with st.container(horizontal=True, key="loop_steps"):
        for name, goal in ways:
            st.button(
                state.say(name), key=f"{name}_{state.choices.language}", on_click=_stop_at, args=(goal,),
                disabled=goal == steps or not 0 <= goal <= MOST_STEPS,
                type="primary" if name == "loop_step" else "secondary",
            )
        st.button(
            state.say("loop_pause" if plays else "loop_play"), key=f"loop_play_{state.choices.language}",
            on_click=_stop_at if plays else _start, args=(steps,), disabled=steps >= MOST_STEPS and not plays,
        )


def _go_to(steps: int) -> None:
    current().set_control("steps", min(max(steps, 0), MOST_STEPS))


def _stop_at(steps: int) -> None:
    _go_to(steps)
    state = current()
    # the timer belongs to the page
    state.needs_page |= state.due is not None
    state.due = None


def _start(steps: int) -> None:
    """The first token comes at once, the others by the timer of the page."""
    _go_to(steps + 1)
    state = current()
    state.due, state.needs_page = monotonic(), True


# ---- the cost

def _table(state: State, turns: list[Turn]) -> Markup:
    """A line for each step, the one that is on the board last, and the sums."""
    names = ("step", "token", "probability", "positions", "full", "cached", "ratio", "difference")
    heads = tag("tr", *(tag("th", state.say(f"cost_{name}"), scope="col") for name in names))
    lines = [_line(state, place + 1, turn, turn is turns[-1]) for place, turn in enumerate(turns)]
    full, cached = sum(turn.full for turn in turns), sum(turn.cached for turn in turns)
    sums = tag("tr", *_cells(
        state.say("cost_sum"), "", "", "", _counted(full), _counted(cached), _ratio(full, cached),
        _difference(max(turn.difference for turn in turns)),
    ), css="loop-sum")
    return tag("table", heads, *lines, sums, css="pairs", aria_label=state.say("loop_cost"))


def _line(state: State, step: int, turn: Turn, is_last: bool) -> Markup:
    token = token_chip(state.model, turn.token, "" if is_last else "new")
    both = " → ".join(_span(range(places.start - turn.window.start, places.stop - turn.window.start))
                      for places in (turn.window, turn.positions))
    read = join(both, " ", tag("small", state.say("cost_rebuilt"))) if turn.rebuilt else both
    return tag("tr", *_cells(
        str(step), token, _likely(state, turn), read, _counted(turn.full),
        _counted(turn.cached), _ratio(turn.full, turn.cached), _difference(turn.difference),
    ), css="pairs-next" if is_last else "")


def _likely(state: State, turn: Turn) -> str:
    """The probability of the token; a percentage with two decimals would call a rare one impossible."""
    probability = turn.probability
    return number(probability) if probability < RARE else percent(state.choices.language, probability)


def _span(positions: range) -> str:
    """The numbers that the model gives these positions."""
    first, last = positions[0], positions[-1]
    return f"{first}" if first == last else f"{first}…{last}"


def _cells(*content: str) -> list[Markup]:
    return [tag("td", piece, css="pairs-ids" if place > 1 else "") for place, piece in enumerate(content)]


def _counted(count: int) -> str:
    """A whole number in groups of three digits."""
    return f"{count:,}".replace(",", "\u202f")


def _ratio(full: int, cached: int) -> str:
    return f"{full / cached:.2f} : 1"


def _difference(difference: float) -> str:
    return "0" if difference == 0 else number(difference)


def _conclusions(state: State, turns: list[Turn]) -> list[Markup]:
    """Whether both ways agree, and what part of the multiplications is the head's."""
    largest = max(turn.difference for turn in turns)
    kept = any(len(turn.positions) < len(turn.window) for turn in turns)
    if not state.model.config.causal:
        verdict = "cost_not_causal"
    elif not kept:
        verdict = "cost_nothing_yet"
    else:
        verdict = "cost_equal" if largest <= ROUNDING else "cost_unequal"
    full, cached = (sum(counts) for counts in zip(
        *((turn.full - len(turn.window) * turn.head, turn.cached - len(turn.positions) * turn.head) for turn in turns),
        strict=True,
    ))
    return [
        tag("p", fill(state.say(verdict), difference=_difference(largest)), css="card-status", role="status"),
        tag("p", fill(
            state.say("cost_head"), head=_counted(turns[-1].head), full=_counted(full), cached=_counted(cached),
            ratio=_ratio(full, cached),
        )),
    ]
