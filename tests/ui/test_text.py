"""Catalogues that say the same in both languages, keys that exist and are used, numbers as shown."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import inf, nan
from pathlib import Path

import pytest

from engine import EditError, GlassboxError, InputError, presets
from engine.explain import LEAVES
from engine.operations import OPERATIONS
from tests.ui.support import ROOT
from ui.explanation import SPECIFIC
from ui.hiding import INVITED
from ui.switches import FIELDS
from ui.text import (
    BOARD_LABELS,
    LANGUAGE_NAMES,
    LANGUAGES,
    board_labels,
    catalogue,
    explain_error,
    number,
    percent,
    precise,
    say,
    short,
    visible,
)
from ui.wording import traits

# raised only where a caller brings a configuration, parameters, ids or sampling settings of their own, as no
# reader can: the app's models are presets, and what is typed is text
OUT_OF_REACH = {
    "no_tokenizer", "not_ids", "size", "heads_do_not_divide", "choice", "positive", "parameter_names",
    "parameter_shape", "parameter_value", "dropout", "temperature", "top_k", "top_p", "stored_file",
    "no_targets", "targets_shape",
}
SCRIPTS = sorted((ROOT / "assets" / "board").glob("*.js"))
ENGINE = sorted((ROOT / "engine").glob("*.py"))
ERRORS = tuple(kind.__name__ for kind in (GlassboxError, *GlassboxError.__subclasses__()))
PYTHON = [*sorted((ROOT / "ui").glob("*.py")), *sorted((ROOT / "pages").glob("*.py")), ROOT / "app.py"]


def places(words: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(words) if name is not None)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def calls(paths: list[Path], name: str) -> Iterator[ast.Call]:
    """Calls of that function or method."""
    for path in paths:
        for node in ast.walk(tree(path)):
            match node:
                case ast.Call(ast.Name(called) | ast.Attribute(attr=called)) if called == name:
                    yield node


def pattern(joined: ast.JoinedStr) -> str:
    """An f-string as a regular expression, any text in its places."""
    return "".join(
        re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w[\w.]*"
        for part in joined.values
    )


def test_both_languages_have_the_same_keys() -> None:
    assert LANGUAGES == tuple(LANGUAGE_NAMES) == ("en", "zh")
    assert list(catalogue("en")) == list(catalogue("zh"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_label_is_empty_or_given_twice(language: str) -> None:
    assert [key for key, words in catalogue(language).items() if not words.strip()] == []
    source = (ROOT / "assets" / "messages" / f"{language}.po").read_text(encoding="utf-8")
    keys = re.findall(r'^msgid "(.+)"$', source, re.MULTILINE)
    assert len(keys) == len({*keys}) == len(catalogue(language))
    assert "#, fuzzy" not in source


@pytest.mark.parametrize("key", catalogue("en"))
def test_both_languages_fill_in_the_same_places(key: str) -> None:
    assert places(catalogue("en")[key]) == places(catalogue("zh")[key])


def test_chinese_labels_are_chinese() -> None:
    """But for those that are names, signs or letters in any language."""
    same = {key for key, words in catalogue("zh").items() if words == catalogue("en")[key]}
    assert same <= {
        "arch_activation_relu", "arch_activation_relu_squared", "arch_norm", "arch_logit_soft_cap_1",
        "arch_logit_soft_cap_15",
        "arch_logit_soft_cap_30", "arch_norm_layernorm", "arch_norm_rmsnorm", "arch_positions_rope",
        "arch_scale_scores", "axis_batch", "axis_head", "axis_key", "axis_query", "chart_layer_norm",
        "chart_positions_rope", "chart_rms_norm", "column_token", "combination_gpt2", "combination_llama",
        "combination_nanochat", "cost_token", "delta", "flow_attention", "flow_embedding", "flow_gelu_tanh",
        "flow_layernorm", "flow_lm_head", "flow_mlp", "flow_norm1", "flow_norm2", "flow_relu", "flow_relu_squared",
        "flow_rmsnorm", "head", "head_number", "line_relu", "line_relu_squared", "optimizer_adamw", "optimizer_sgd",
        "slider_beta1", "slider_beta2", "slider_x", "stage_embedding", "station_mlp", "step_loss", "title_inference",
    }


def test_keys_that_the_code_asks_for_exist() -> None:
    keys, asked = set(catalogue("en")), set[str]()
    for name in ("say", "say_with"):
        for call in calls(PYTHON, name):
            asked |= {str(each.value) for each in call.args if isinstance(each, ast.Constant)}
            for each in call.args:
                if isinstance(each, ast.JoinedStr):
                    assert any(re.fullmatch(pattern(each), key) for key in keys), ast.unparse(each)
    assert len(asked) > 15
    assert asked <= keys


def test_labels_that_the_scripts_ask_for_are_sent() -> None:
    for script in SCRIPTS:
        asked = set(re.findall(r"\blabels\.(\w+)", script.read_text(encoding="utf-8")))
        assert asked <= set(BOARD_LABELS), script.name


def test_labels_that_are_sent_are_used() -> None:
    source = "\n".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    kinds = {"parameter", "computed", "leaf"}
    used = {*re.findall(r"\blabels\.(\w+)", source), *re.findall(r'"(\w+)"', source), *kinds}
    assert set(BOARD_LABELS) <= used
    assert board_labels("zh")["undo"] == catalogue("zh")["undo"]


def test_every_key_is_used_somewhere() -> None:
    literals, patterns = set[str](), set[str]()
    for path in PYTHON:
        for node in ast.walk(tree(path)):
            match node:
                case ast.Constant(str(value)):
                    literals.add(value)
                case ast.JoinedStr([ast.Constant(str(start)), *_]) if re.match(r"[a-z]{3,}_", start):
                    patterns.add(pattern(node))
    exact = {*literals, *BOARD_LABELS, *error_keys(), *explanation_keys()}
    # a sentence for some models only is found by the note's key and what is special about them
    ends = {*presets.NAMES, *every_trait(), *INVITED}
    exact |= {f"{key}_{end}" for key in literals if key.startswith(("note_", "section_")) for end in ends}
    free = [each for each in patterns if not each.startswith(("error_", "explain_"))]
    free += [f"{each}_({'|'.join(ends)})" for each in patterns if each.startswith("verdict_")]
    unused = [
        key for key in catalogue("en")
        if key not in exact and not any(re.fullmatch(each, key) for each in free)
    ]
    assert unused == []


def every_trait() -> set[str]:
    """What an architecture may be like, in the words of `wording.traits`."""
    own = presets.load("cats").config
    return {
        trait for field, values in FIELDS.items() for value in values
        for trait in traits(replace(own, max_positions=32, **{field: value}))  # type: ignore[arg-type]
    }


def raised() -> dict[str, list[set[str]]]:
    """Code of every error that the app can meet → the facts that each place gives with it."""
    return {code: facts for code, facts in raised_in([*ENGINE, *PYTHON]).items() if code not in OUT_OF_REACH}


def raised_in(paths: list[Path]) -> dict[str, list[set[str]]]:
    """Code of every error in those modules → the facts that each place gives with it."""
    found: dict[str, list[set[str]]] = {}
    for name in ERRORS:
        for call in calls(paths, name):
            # a code that is worked out would be seen by no test
            assert call.args, ast.unparse(call)
            assert isinstance(call.args[0], ast.Constant), ast.unparse(call)
            facts = {keyword.arg for keyword in call.keywords if keyword.arg}
            found.setdefault(str(call.args[0].value), []).append(facts)
    return found


def error_keys() -> set[str]:
    return {f"error_{code}" for code in raised()}


def explanation_keys() -> set[str]:
    """One for each operation and kind of leaf, for what some of them mean in some tensors, and for cases of them."""
    own = {"override", "empty_row", "omitted", "rotate_interleaved", "rotate_half"}
    return {f"explain_{each}" for each in {*OPERATIONS, *LEAVES, *SPECIFIC.values(), *own, *cases()} - {"rotate"}}


def cases() -> set[str]:
    """What the panel's code decides to say of an operation by its operands."""
    found = set[str]()
    for name in ("explanation", "ranking_words"):
        for node in ast.walk(tree(ROOT / "ui" / f"{name}.py")):
            if isinstance(node, ast.Return) and node.value is not None:
                found |= {
                    str(each.value) for each in ast.walk(node.value)
                    if isinstance(each, ast.Constant) and f"explain_{each.value}" in catalogue("en")
                }
    return found


def test_every_error_has_words_made_of_what_it_knows() -> None:
    assert {"unknown_word", "id_out_of_range", "too_long", "not_finite", "seed"} <= set(raised())
    for code, given in raised().items():
        for language in LANGUAGES:
            needed = set(places(catalogue(language)[f"error_{code}"]))
            missing = [facts for facts in given if not needed <= facts]
            assert missing == [], (code, language)
    assert not {f"error_{code}" for code in OUT_OF_REACH} & set(catalogue("en"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_of_the_engine_has_words_or_is_out_of_reach(language: str) -> None:
    codes = set(raised_in(ENGINE))
    assert codes >= OUT_OF_REACH, "a code that the engine no longer has"
    told = {key.removeprefix("error_") for key in catalogue(language) if key.startswith("error_")}
    assert codes - told == OUT_OF_REACH
    # the app's own: two limits, sentences of two lengths, and an event that cannot be carried out
    assert told - codes == {"too_many_edits", "long_text", "other_length", "event"}


def test_every_kind_of_error_is_looked_for() -> None:
    assert {"GlassboxError", "ConfigError", "InputError", "EditError"} == set(ERRORS)
    classes = [node for path in ENGINE for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    ours = {node.name for node in classes if {base.id for base in node.bases if isinstance(base, ast.Name)} & {*ERRORS}}
    assert ours == set(ERRORS) - {"GlassboxError"}


def test_every_operation_has_words() -> None:
    assert {"explain_parameter", "explain_ids", "explain_constant", "explain_matmul"} <= explanation_keys()
    assert {key for key in catalogue("en") if key.startswith("explain_")} == explanation_keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_name_what_is_wrong(language: str) -> None:
    unknown = InputError("unknown_word", "", word="zebra", words=("on", "sit"), last_id=255)
    words = explain_error(language, unknown)
    assert all(part in words for part in ("zebra", "on、sit" if language == "zh" else "on, sit", "255"))
    words = explain_error(language, EditError("not_finite", "", name="logits", value=inf))
    assert all(part in words for part in ("logits", "∞"))


def test_a_long_vocabulary_is_cut() -> None:
    words = tuple(f"w{place}" for place in range(50))
    told = explain_error("en", InputError("unknown_word", "", word="zebra", words=words, last_id=49))
    assert "w11" in told
    assert "w12" not in told


def test_places_are_filled_and_braces_of_readers_left_alone() -> None:
    assert say("en", "error_id_out_of_range", id="{0}", last_id=5) == "Id {0} is outside 0…5."
    with pytest.raises(KeyError):
        say("en", "no such key")


@pytest.mark.parametrize(("value", "shown"), [
    (0.0, "0.0000"), (-0.0, "0.0000"), (1.0, "1.0000"), (-1.0, "−1.0000"), (0.90729, "0.9073"),
    (-0.09108, "−0.0911"), (0.00005, "0.0001"), (-0.00005, "−0.0001"), (0.000049, "4.9e−5"),
    (-0.00001, "−1.0e−5"), (1e-6, "1.0e−6"), (-1.26e-7, "−1.3e−7"), (5e-324, "4.9e−324"),
    (99999.0, "99999.0000"),
    (1e5, "1.0e5"), (-123456.0, "−1.2e5"), (1e300, "1.0e300"), (nan, "NaN"), (inf, "∞"), (-inf, "−∞"),
    (12.0, "12.0000"), (1 / 3, "0.3333"), (2 / 3, "0.6667"),
])
def test_four_decimals(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(("value", "shown"), [
    (-5.66e-5, "−5.66e−5"), (0.000999, "9.99e−4"), (0.001, "0.0010"), (0.0001, "1.00e−4"), (0.0, "0.0000"),
    (-0.5, "−0.5000"), (1e5, "1.0e5"), (-inf, "−∞"),
])
def test_formulas_have_three_digits_at_least(value: float, shown: str) -> None:
    assert precise(value) == shown


@pytest.mark.parametrize(("value", "shown"), [
    (0.2, "0.2"), (-0.2, "−0.2"), (3.0, "3"), (-1.0, "−1"), (0.0, "0"), (-0.0, "0"), (1e-6, "1e−6"),
    (12.5, "12.5"),
    (0.1 + 0.2, "0.30000000000000004"), (1e-10, "1e−10"), (2.5e-7, "2.5e−7"), (30.0, "30"), (-inf, "−∞"),
])
def test_the_shortest_exact_decimal(value: float, shown: str) -> None:
    assert short(value) == shown


@pytest.mark.parametrize(("value", "shown"), [
    (0.0097, "0.97 %"), (0.5376, "53.76 %"), (1.0, "100.00 %"), (0.0, "0.00 %"), (0.0039, "0.39 %"),
    (-0.5, "−50.00 %"),
])
def test_percentages(value: float, shown: str) -> None:
    """Chinese writes no space before the sign."""
    assert percent("en", value) == shown
    assert percent("zh", value) == shown.replace(" ", "")


def test_invisible_characters_are_shown() -> None:
    assert visible("a b\n\t") == "a␣b↵⇥"
    assert visible("Cats") == "Cats"
