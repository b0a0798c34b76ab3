"""Words in the reader's language, and numbers as they are shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from math import isfinite, isinf, isnan
from pathlib import Path
from types import MappingProxyType

from babel.messages.pofile import read_po

from engine import GlassboxError

ASSETS = Path(__file__).parent.parent / "assets"
LANGUAGES = ("en", "zh")
LANGUAGE_NAMES = MappingProxyType({"en": "English", "zh": "中文"})
# the labels that the board's scripts use
BOARD_LABELS = (
    "undo redo reset_all reset_cell reset_tensor edits no_edits architecture_changed first_changed next_token was "
    "values delta both view layer head snapshots save name restore previous_lesson next_lesson change_sentence use "
    "cancel comma number minus_infinity_not_here wider step_up step_down explain computed_would_be copy copied "
    "show_all trail close more row show_row parameter computed leaf overridden of range changed edited slider "
    "dismiss used_row muted_row pending tied forget snapshots_hint row_range percent help_title help present "
    "present_keys present_leave step_back step_on hand_out hand_out_present hand_out_hide link copy_link code "
    "code_too_long local_link find_term terms_found no_term remove put_back "
    "put_all_back nothing_removed"
).split()
FOUR_DECIMALS = Decimal("0.0001")
SMALLEST_DECIMAL = 0.00005
# below this a formula could not be checked with four decimals
SMALLEST_IN_FORMULA = 0.001
LARGEST_DECIMAL = 1e5
LISTED_WORDS = 12
# tensors that the board has under another name → its key, or a sign that is the same in every language
_ON_THE_BOARD: Mapping[str, str] = MappingProxyType({
    "raise_logit.against": "title_raise_against", "loss.vocabulary_size": "title_vocabulary_size",
    "optimizer.adamw.step": "t", "optimizer.epsilon": "ε",
    **{f"optimizer.{name}": f"slider_{name}" for name in (
        "learning_rate", "momentum", "beta1", "beta2", "weight_decay", "clip",
    )},
    "dropout.p": "slider_p", "dropout.seed": "slider_seed", "why_sqrt.seed": "slider_sqrt_seed",
    "choosing.temperature": "slider_temperature", "choosing.top_k": "slider_top_k", "choosing.top_p": "slider_top_p",
    "choosing.seed": "slider_draw_seed",
})
# the same of what an optimizer's step has for every parameter, by the end of the name
_IN_A_STEP: Mapping[str, str] = MappingProxyType({
    "v_before": "row_step_v_before", "squared": "g²", "v": "v", "v_hat": "v̂",
})
_SIGNS = MappingProxyType({" ": "␣", "\n": "↵", "\t": "⇥"})


@lru_cache(maxsize=len(LANGUAGES))
def catalogue(language: str) -> MappingProxyType[str, str]:
    """Every short label of a language by its key."""
    with (ASSETS / "messages" / f"{language}.po").open("rb") as file:
        messages = read_po(file, locale=language)
    return MappingProxyType({str(message.id): str(message.string) for message in messages if message.id})


def say(language: str, key: str, **values: object) -> str:
    """The words for `key` in `language`, with `{name}` places filled in."""
    template = catalogue(language)[key]
    return template.format(**values) if values else template


def joined(language: str, sentences: Sequence[str]) -> str:
    """Sentences one after the other; Chinese ones need no space between them."""
    return ("" if language == "zh" else " ").join(sentences)


def listed(language: str, words: Iterable[str]) -> str:
    """Words in a row, with the mark that the language puts between them."""
    return ("、" if language == "zh" else ", ").join(words)


def parted(language: str, phrases: Iterable[str]) -> str:
    """Phrases in a row that may have commas of their own."""
    return ("；" if language == "zh" else "; ").join(phrases)


def board_labels(language: str) -> dict[str, str]:
    """The labels that the board's scripts use, in one language."""
    return {key: catalogue(language)[key] for key in BOARD_LABELS}


def preferred_language(locale: str | None) -> str:
    """zh for a Chinese browser, else English."""
    return "zh" if locale and locale.lower().startswith("zh") else "en"


def explain_error(language: str, error: GlassboxError) -> str:
    """What went wrong, and what to do, in the reader's words."""
    return say(language, f"error_{error.code}", **{
        name: _called(language, str(fact)) if name == "name" else _told(language, fact)
        for name, fact in error.details.items()
    })


def _told(language: str, fact: object) -> object:
    if isinstance(fact, tuple):
        return listed(language, map(str, fact[:LISTED_WORDS]))
    return short(fact) if isinstance(fact, float) else fact


def _called(language: str, tensor: str) -> str:
    """What the board calls a tensor."""
    part = tensor.rpartition(".")[2] if tensor.startswith("optimizer.adamw.") else ""
    key = _ON_THE_BOARD.get(tensor) or _IN_A_STEP.get(part)
    return tensor if key is None else f"“{catalogue(language).get(key, key)}”"


def number(value: float) -> str:
    """Four decimals; scientific where four decimals would show zero or run too long; a true minus."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size and (size < SMALLEST_DECIMAL or size >= LARGEST_DECIMAL):
        return _scientific(value, 1)
    # halves go away from zero, as in the browser
    rounded = Decimal(value).quantize(FOUR_DECIMALS, ROUND_HALF_UP) + 0
    return str(rounded).replace("-", "−")


def precise(value: float) -> str:
    """A number as formulas have it: three digits at least, however small it is."""
    return _scientific(value, 2) if 0 < abs(value) < SMALLEST_IN_FORMULA else number(value)


def _scientific(value: float, decimals: int) -> str:
    mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def short(value: float) -> str:
    """The shortest decimal that is exactly this double: 0.2, 1e−6, 3."""
    if not isfinite(value):
        return number(value)
    # −0 is 0 to a reader
    text = repr(float(value) + 0.0).removesuffix(".0").replace("e-0", "e-")
    return text.replace("-", "−")


def percent(language: str, value: float) -> str:
    """A share of one as a percentage with two decimals, as the language writes it."""
    return say(language, "percent", n=f"{100 * value:.2f}".replace("-", "−"))


def visible(token: str) -> str:
    """A token's text with its spaces and line ends shown, and the number of what has no look of its own."""
    shown = "".join(map(_visible, token))
    # an accent that would sit on the character before it gets a place of its own
    return f"◌{shown}" if shown and unicodedata.combining(shown[0]) else shown


def _visible(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    return character if character.isprintable() else f"U+{ord(character):04X}"
