"""The logit lens: each stage is what a model of so many layers predicts, by a forward pass written apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine import Edit, EditError, Model, Trace, gradient, presets, programs, run
from engine.programs.question import Question
from engine.variants import variant
from tests.engine.by_hand import forward
from tests.engine.support import Array, assert_explained, bits, model_with

# head size 16, more positions than heads, tokens that come again
SIZES = {"vocab_size": 11, "hidden_size": 32, "heads": 2, "layers": 3, "mlp_size": 12}
IDS = [3, 1, 4, 1, 5, 1, 3]
TOKEN, RIVAL = 4, 7
QUESTION = Question(TOKEN, RIVAL)
ARCHITECTURES: dict[str, dict[str, object]] = {
    "own": {}, "GPT-2": {"norm": "layernorm", "bias": True, "positions": "learned", "max_positions": 8,
                         "tied_head": True, "activation": "gelu_tanh"},
    "no norm": {"norm": "none", "causal": False}, "post-norm": {"norm_placement": "post", "norm": "layernorm"},
    "no residual": {"residual": False, "activation": "gelu_erf"}, "capped": {"logit_soft_cap": 0.7},
}
EVERY_ARCHITECTURE = pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES)


def uneven(model: Model) -> Model:
    """The model with norm weights and biases that are not all alike, and all else made small."""
    generator = np.random.default_rng(2)
    return Model(model.config, {
        name: array + 0.3 * generator.normal(size=array.shape) if "norm" in name else 0.4 * array
        for name, array in model.parameters.items()
    })


def traced(model: Model, inputs: object, *edits: Edit, question: Question = QUESTION) -> Trace:
    return run(model, inputs, edits=edits, program=programs.of("lens", question))  # type: ignore[arg-type]


def stages(trace: Trace, name: str) -> Array:
    """A number of the lens after the embedding and after every layer, [stage, position]."""
    layers = range(trace.model.config.layers)
    names = ["lens.embedding", *(f"layers.{layer}.lens" for layer in layers)]
    return np.stack([trace[f"{stage}.{name}"].data[0] for stage in names])


def expected(model: Model, ids: list[int]) -> Array:
    """Logits [stage, position, V]: of a model without layers, with one, with two …"""
    config, parameters = model.config, model.parameters
    # the shortest model that the separate pass can run has one layer, whose branches add nothing here
    if config.residual and config.norm_placement == "pre":
        empty = forward(replace(config, layers=1), parameters, ids,
                        lambda what, layer, array: 0.0 * array if what in ("attention", "mlp") else array)
    else:
        stream = parameters["embedding.weight"][ids]
        centered = stream - stream.mean(-1, keepdims=True) * (config.norm == "layernorm")
        scale = np.sqrt((centered**2).mean(-1, keepdims=True) + config.norm_epsilon)
        bias = parameters.get("final_norm.bias", 0.0)
        empty = (centered / scale * parameters["final_norm.weight"] + bias) @ parameters["lm_head.weight"].T
    full = [forward(replace(config, layers=count), parameters, ids) for count in range(1, config.layers + 1)]
    logits = np.stack([empty, *full])
    cap = config.logit_soft_cap
    return logits if cap is None else cap * np.tanh(logits / cap)


@EVERY_ARCHITECTURE
@pytest.mark.parametrize("ids", [IDS, [5]], ids=["seven", "one"])
def test_a_stage_is_a_model_that_ends_there(changes: dict[str, object], ids: list[int]) -> None:
    model = uneven(model_with(**SIZES, **changes, seed=3))
    trace, logits = traced(model, ids), expected(model, ids)
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    odds /= odds.sum(-1, keepdims=True)
    ranks = [[sorted(range(11), key=lambda v: (-row[v], v)).index(TOKEN) + 1 for row in stage] for stage in logits]
    np.testing.assert_array_equal(stages(trace, "leading"), logits.argmax(-1))
    np.testing.assert_allclose(stages(trace, "leading_probability"), odds.max(-1), rtol=0, atol=1e-10)
    np.testing.assert_allclose(stages(trace, "token_probability"), odds[..., TOKEN], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(stages(trace, "rank"), ranks)
    climbs = [trace[f"layers.{layer}.lens.climb"].data[0] for layer in range(3)]
    np.testing.assert_array_equal(climbs, -np.diff(np.array(ranks), axis=0))
    for layer in range(2):
        np.testing.assert_allclose(trace[f"layers.{layer}.lens.logits"].data[0], logits[layer + 1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_last_stage_is_the_model_s_own(preset: str) -> None:
    model = presets.load(preset)
    sentence, last = presets.SENTENCES[preset], model.config.layers - 1
    trace = traced(model, sentence)
    plain = run(model, sentence)
    position = len(trace.ids[0]) - 1
    row = plain["logits"].row(0, position)
    here = f"layers.{last}.lens"
    assert trace[f"{here}.leading"].number((0, position)) == row.argmax()
    odds = plain["probabilities"].row(0, position)
    assert trace[f"{here}.token_probability"].number((0, position)) == odds[TOKEN]
    assert f"{here}.logits" not in trace
    own = [name for name in plain if "vocabulary" not in plain[name].axes]
    assert [bits(trace[name]) for name in own] == [bits(plain[name]) for name in own]
    # and it has no other stream to read: an edit behind the layers moves it, and it alone
    if model.config.norm != "none":
        moved = traced(model, sentence, Edit("final_norm.output", (0, position, 0), 40.0))
        now, before = (stages(each, "token_probability") for each in (moved, trace))
        np.testing.assert_array_equal(now[:-1], before[:-1])
        assert now[-1, position] != before[-1, position]


def test_of_equal_logits_the_lower_id_stands_first(cats: Model) -> None:
    """Of 256 rows of the head all but two are zero: `mats` above them, `chairs` below, after `on`."""
    for token, rank in ((90, 1), (0, 2), (89, 91), (92, 92), (255, 255), (91, 256)):
        trace = traced(cats, "Cats sit on", question=Question(token, 0))
        assert trace["layers.1.lens.rank"].data[0, 2] == rank
    level = traced(cats, "Cats sit on", Edit("lm_head.weight", (slice(90, 92),), 0.0))
    assert stages(level, "leading").tolist() == [[0.0] * 3] * 3
    assert level["layers.0.lens.rank"].data.tolist() == [[TOKEN + 1.0] * 3]


@pytest.mark.parametrize("changes", [ARCHITECTURES["GPT-2"], ARCHITECTURES["capped"]], ids=["GPT-2", "capped"])
def test_every_cell_explains_itself(changes: dict[str, object]) -> None:
    model = uneven(model_with(**{**SIZES, "hidden_size": 4, "mlp_size": 5}, **changes))
    trace = traced(model, [1, 4, 1], Edit("layers.1.lens.leading", (0, 1), 3.0))
    assert_explained(gradient(trace, "layers.1.lens.token_probability", (0, 2)))


def test_an_id_or_a_rank_that_there_is_none_of_is_refused(cats: Model) -> None:
    for name, value in (("leading", 256.0), ("leading", 1.5), ("rank", 0.0), ("rank", 257.0)):
        with pytest.raises(EditError):
            traced(cats, "Cats", Edit(f"layers.0.lens.{name}", (0, 0), value))


def test_a_large_vocabulary_is_read_one_position_at_a_time() -> None:
    model = variant(presets.load("today"), layers=1)
    trace = traced(model, "今天天气真", question=Question(5120, 6144))
    large = {name for name, tensor in trace.items() if "lens" in name and "vocabulary" in tensor.axes}
    assert large
    assert all(trace[name].is_deferred for name in large)
    table, stream = model.parameters["embedding.weight"], trace["embedding.sum"].data[0, 2]
    centered = stream - stream.mean()
    normed = centered / np.sqrt((centered**2).mean() + model.config.norm_epsilon)
    logits = table @ (normed * model.parameters["final_norm.weight"] + model.parameters["final_norm.bias"])
    assert trace["lens.embedding.leading"].number((0, 2)) == logits.argmax()
    own = logits[5120]
    assert trace["lens.embedding.rank"].number((0, 2)) == 1 + np.sum(logits > own) + np.sum(logits[:5120] == own)
