"""Configurations, parameters and sentences that are refused, and what the error names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import ConfigError, GlassboxError, InputError, Model, ModelConfig, presets, run
from tests.engine.support import model_with

SIZES = {"vocab_size": 5, "hidden_size": 4, "layers": 1, "heads": 2, "mlp_size": 3}


def facts(error: GlassboxError) -> dict[str, object]:
    """The code and the details, as an interface puts them into words."""
    return {"code": error.code, **error.details}


@pytest.mark.parametrize(("changes", "expected"), [
    ({"hidden_size": 6}, {"code": "odd_head_size", "head_size": 3}),
    ({"hidden_size": 5}, {"code": "heads_do_not_divide", "hidden_size": 5, "heads": 2}),
    ({"layers": 0}, {"code": "size", "field": "layers", "value": 0}),
    ({"vocab_size": -1}, {"code": "size", "field": "vocab_size", "value": -1}),
    ({"mlp_size": 2.0}, {"code": "size", "field": "mlp_size", "value": 2.0}),
    ({"heads": True}, {"code": "size", "field": "heads", "value": True}),
    ({"max_positions": 2.5}, {"code": "size", "field": "max_positions", "value": 2.5}),
    ({"max_positions": 0}, {"code": "size", "field": "max_positions", "value": 0}),
    ({"norm_epsilon": 0.0}, {"code": "positive", "field": "norm_epsilon", "value": 0.0}),
    ({"norm_epsilon": float("inf")}, {"code": "positive", "field": "norm_epsilon", "value": float("inf")}),
    ({"rope_base": -1.0}, {"code": "positive", "field": "rope_base", "value": -1.0}),
    ({"rope_pairing": "thirds"},
     {"code": "choice", "field": "rope_pairing", "value": "thirds", "allowed": ("interleaved", "half")}),
    ({"activation": "swish"}, {"code": "choice", "field": "activation"}),
    ({"norm": "batchnorm"}, {"code": "choice", "field": "norm"}),
])
def test_a_configuration_that_no_model_can_have(
    changes: dict[str, Any], expected: dict[str, object]
) -> None:
    with pytest.raises(ConfigError) as raised:
        ModelConfig(**{**SIZES, **changes})
    assert expected.items() <= facts(raised.value).items()


def test_not_a_number_as_epsilon() -> None:
    with pytest.raises(ConfigError, match="norm_epsilon must be positive and finite"):
        ModelConfig(**SIZES, norm_epsilon=float("nan"))  # type: ignore[arg-type]


class TestParameters:
    @pytest.fixture
    def given(self, cats: Model) -> dict[str, Any]:
        return dict(cats.parameters)

    def test_missing_and_unknown(self, cats: Model, given: dict[str, Any]) -> None:
        del given["layers.1.attention.Wo"]
        given["layers.1.attention.bo"] = np.zeros(4)
        with pytest.raises(ConfigError) as raised:
            Model(cats.config, given)
        assert facts(raised.value) == {
            "code": "parameter_names",
            "missing": ["layers.1.attention.Wo"], "unknown": ["layers.1.attention.bo"],
        }

    @pytest.mark.parametrize(("name", "shape", "expected"), [
        ("layers.0.mlp.W_up", (8, 4), (4, 8)), ("final_norm.weight", (1, 4), (4,)),
        ("lm_head.weight", (4, 256), (256, 4)),
    ])
    def test_misshapen(self, cats: Model, given: dict[str, Any], name: str, shape: tuple[int, ...],
                       expected: tuple[int, ...]) -> None:
        given[name] = np.zeros(shape)
        with pytest.raises(ConfigError) as raised:
            Model(cats.config, given)
        assert facts(raised.value) == {
            "code": "parameter_shape", "name": name, "shape": shape, "expected": expected,
        }

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, cats: Model, given: dict[str, Any], value: float) -> None:
        given["embedding.weight"] = given["embedding.weight"].copy()
        given["embedding.weight"][200, 3] = value
        with pytest.raises(ConfigError) as raised:
            Model(cats.config, given)
        assert facts(raised.value) == {"code": "parameter_value", "name": "embedding.weight"}

    @pytest.mark.parametrize("kind", ["complex128", "U8", "bool", "object"])
    def test_no_real_numbers(self, cats: Model, given: dict[str, Any], kind: str) -> None:
        given["embedding.weight"] = given["embedding.weight"].astype(kind)
        with pytest.raises(ConfigError, match="not an array of real numbers") as raised:
            Model(cats.config, given)
        assert facts(raised.value) == {"code": "parameter_value", "name": "embedding.weight"}

    def test_mixed_precision_becomes_float64(self, cats: Model, given: dict[str, Any]) -> None:
        given["final_norm.weight"] = np.ones(4, dtype=np.float32)
        given["layers.0.attention.Wq"] = np.eye(4, dtype=np.int64)
        model = Model(cats.config, given)
        assert {array.dtype for array in model.parameters.values()} == {np.dtype(np.float64)}


@pytest.mark.parametrize(("text", "expected"), [
    ("Cats sit under", {"code": "unknown_word", "word": "under", "last_id": 255}),
    ("12 256", {"code": "id_out_of_range", "id": 256, "last_id": 255}),
    ("Cats -1", {"code": "id_out_of_range", "id": -1, "last_id": 255}),
    ("Cats 1.5", {"code": "unknown_word", "word": "1.5"}),
    ("#256", {"code": "id_out_of_range", "id": 256, "last_id": 255}),
    ("#-1", {"code": "id_out_of_range", "id": -1, "last_id": 255}),
    ("２５６", {"code": "id_out_of_range", "id": 256, "last_id": 255}),
    ("##1", {"code": "unknown_word", "word": "##1"}),
    ("#", {"code": "unknown_word", "word": "#"}),
    ("#Cats", {"code": "unknown_word", "word": "#Cats"}),
    ("--1", {"code": "unknown_word", "word": "--1"}),
    ("١", {"code": "unknown_word"}),
    ("", {"code": "empty"}),
    (" ,\n", {"code": "empty"}),
])
def test_a_text_that_cannot_be_read(cats: Model, text: str, expected: dict[str, object]) -> None:
    with pytest.raises(InputError) as raised:
        run(cats, text)
    assert expected.items() <= facts(raised.value).items()


def test_an_unknown_word_says_what_is_allowed(cats: Model) -> None:
    with pytest.raises(InputError, match="'dogs' is not in the vocabulary: Cats, sit, on, ") as raised:
        run(cats, "dogs sit on")
    assert raised.value.details["words"] == ("Cats", "sit", "on", "mats", "chairs", "volcano")


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "#" + "9" * 5000, "９" * 5000, "1" + "0" * 18])
def test_a_number_of_many_digits(cats: Model, text: str) -> None:
    with pytest.raises(InputError) as raised:
        run(cats, text)
    assert (raised.value.code, raised.value.details["last_id"]) == ("id_out_of_range", 255)
    assert str(raised.value.details["id"]).endswith("…")
    assert len(str(raised.value)) < 100


@pytest.mark.parametrize(("ids", "expected"), [
    ([12, 256], {"code": "id_out_of_range", "id": 256, "last_id": 255}),
    ([[12], [-1]], {"code": "id_out_of_range", "id": -1, "last_id": 255}),
    ([2**63], {"code": "id_out_of_range", "id": 2**63}),
    ([2**64], {"code": "not_ids"}),
    ([], {"code": "empty"}),
    ([[]], {"code": "empty"}),
    ([12.0], {"code": "not_ids"}),
    ([True], {"code": "not_ids"}),
    (["Cats"], {"code": "not_ids"}),
    ([[12, 45], [78]], {"code": "not_ids"}),
    ([[[12]]], {"code": "not_ids"}),
])
def test_ids_that_cannot_be_read(cats: Model, ids: Any, expected: dict[str, object]) -> None:
    with pytest.raises(InputError) as raised:
        run(cats, ids)
    assert expected.items() <= facts(raised.value).items()


def test_a_text_for_a_model_without_words() -> None:
    with pytest.raises(InputError) as raised:
        run(model_with(hidden_size=4), "Cats")
    assert raised.value.code == "no_tokenizer"


@pytest.mark.parametrize(("name", "seed", "expected"), [
    ("dogs", 1, {"code": "preset", "preset": "dogs"}),
    ("scratch", -1, {"code": "seed", "seed": -1}),
    ("scratch", 10000, {"code": "seed", "seed": 10000, "last": 9999}),
])
def test_a_preset_that_does_not_exist(name: str, seed: int, expected: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as raised:
        presets.load(name, seed)
    assert expected.items() <= facts(raised.value).items()
