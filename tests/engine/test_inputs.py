"""How sentences are read, and what the presets offer."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Model, ModelConfig, presets, read_ids, run
from engine.variants import variant

SENTENCE = [[12, 45, 78]]


@pytest.mark.parametrize("text", [
    "Cats sit on", "cats SIT on", "  Cats\tsit\non ", "Cats, sit, on", "12 45 78", "[12, 45, 78]",
    "Cats,sit、on", "Cats 45 on", "#12 #45 #78", "[#12]#45;78", "１２，４５；７８",
    "＃１２\u3000Ｓit\u3000on", "Ｃａｔｓ、４５　on",
])
def test_words_and_numbers(cats: Model, text: str) -> None:
    assert read_ids(cats, text).tolist() == SENTENCE


@pytest.mark.parametrize("ids", [[12, 45, 78], SENTENCE, np.array([12, 45, 78], dtype=np.uint8)])
def test_ids_of_any_whole_kind(cats: Model, ids: list[int]) -> None:
    trace = run(cats, ids)
    assert trace.ids.tolist() == trace["input_ids"].data.tolist() == SENTENCE
    assert trace.ids.dtype == np.int64


def test_decode_is_the_way_back(cats: Model) -> None:
    assert cats.tokenizer is not None
    ids = [12, 90, 0, 255, 12]
    assert cats.tokenizer.decode(ids) == "Cats mats 0 255 Cats"
    assert cats.tokenizer.encode(cats.tokenizer.decode(ids)) == ids
    assert [cats.tokenizer.label(token_id) for token_id in (12, 0)] == ["Cats", "#0"]


def test_cats_is_the_model_of_the_article(cats: Model) -> None:
    assert cats.config == ModelConfig(vocab_size=256, hidden_size=4, layers=2, heads=2, mlp_size=8)
    identity = np.eye(4)
    for layer in ("layers.0", "layers.1"):
        for matrix in ("Wq", "Wk", "Wv", "Wo"):
            assert np.array_equal(cats.parameters[f"{layer}.attention.{matrix}"], identity)
        assert np.array_equal(cats.parameters[f"{layer}.mlp.W_up"], np.block([[identity, -identity]]))
        assert np.array_equal(cats.parameters[f"{layer}.mlp.W_down"], np.block([[identity], [identity]]))
    for name in ("layers.0.norm1", "layers.0.norm2", "layers.1.norm1", "layers.1.norm2", "final_norm"):
        assert cats.parameters[f"{name}.weight"].tolist() == [1, 1, 1, 1]
    assert {array.dtype for array in cats.parameters.values()} == {np.dtype(np.float64)}


def test_scratch_follows_its_seed() -> None:
    first, again, other = (presets.load("scratch", seed) for seed in (3, 3, 4))
    config = first.config
    assert (config.hidden_size, config.heads, config.head_size) == (8, 2, 4)
    for name, array in first.parameters.items():
        assert np.array_equal(array, again.parameters[name])
        assert not np.array_equal(array, other.parameters[name])
        assert np.array_equal(array, np.round(array, 2)), "typed and shared values are two decimals long"


def test_a_variant_changes_the_pairing_alone() -> None:
    scratch = presets.load("scratch")
    half = variant(scratch, rope_pairing="half")
    assert (half.config.rope_pairing, half.config.heads) == ("half", 2)
    assert all(np.array_equal(half.parameters[name], array) for name, array in scratch.parameters.items())
    assert not np.allclose(run(half, [1, 2])["logits"].data, run(scratch, [1, 2])["logits"].data)


def test_parameters_and_tokens_may_be_as_many_as_one_likes() -> None:
    config = ModelConfig(vocab_size=3, hidden_size=2, layers=1, heads=1, mlp_size=1)
    generator = np.random.default_rng(5)
    shapes = config.parameter_shapes().items()
    trace = run(Model(config, {name: generator.normal(size=shape) for name, shape in shapes}), [2] * 32)
    assert trace["logits"].shape == (1, 32, 3)
    assert trace["layers.0.attention.weights"].shape == (1, 1, 32, 32)
