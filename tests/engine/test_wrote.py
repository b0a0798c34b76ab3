"""Who wrote a logit: parts against a forward pass written apart, sums for every model, and what edits put in."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import pytest

from engine import Edit, Model, Trace, gradient, presets, programs, run
from engine.config import ACTIVATIONS, NORMS, PLACEMENTS, POSITIONS
from engine.programs.question import Question
from engine.programs.wrote import SIDES, splits
from engine.variants import variant
from tests.engine.by_hand import forward
from tests.engine.support import Array, assert_explained, bits, model_with, slope
from tests.engine.test_lens import IDS, QUESTION, RIVAL, SIZES, TOKEN, uneven

ARCHITECTURES: dict[str, dict[str, object]] = {
    "own": {}, "half": {"rope_pairing": "half"}, "LayerNorm": {"norm": "layernorm", "bias": True},
    "GPT-2": {"norm": "layernorm", "bias": True, "positions": "learned", "max_positions": 8, "tied_head": True,
              "activation": "gelu_tanh"},
    "no norm": {"norm": "none", "causal": False, "bias": True},
    "no norm after": {"norm": "none", "norm_placement": "post"},
    "capped": {"logit_soft_cap": 0.7, "activation": "gelu_erf"},
}
EVERY_ARCHITECTURE = pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES)
SWITCHES: dict[str, tuple[object, ...]] = {
    "positions": POSITIONS, "norm": NORMS, "norm_placement": PLACEMENTS, "qk_norm": (True,), "scale_scores": (False,),
    "causal": (False,), "residual": (False,), "activation": ACTIVATIONS, "bias": (True, False),
    "tied_head": (True, False), "logit_soft_cap": (1.0, 15.0), "rope_direction": (-1,), "rope_pairing": ("half",),
}


def built(changes: dict[str, object], **sizes: int) -> Model:
    return uneven(model_with(**{**SIZES, **sizes}, **changes, seed=4))


def traced(model: Model, inputs: object, *edits: Edit, question: Question = QUESTION) -> Trace:
    return run(model, inputs, edits=edits, program=programs.of("wrote", question))  # type: ignore[arg-type]


def assert_exact(trace: Trace) -> None:
    """Parts and logit agree, and so do a head's sources and its part, at every position, for both and their gap."""
    for name in trace:
        if ".wrote." in f".{name}" and name.endswith(("rest", "sources_rest")):
            np.testing.assert_allclose(trace[name].data, 0.0, rtol=0, atol=1e-10, err_msg=name)
    logits = trace["logits" if trace.model.config.logit_soft_cap is None else "logits.uncapped"]
    question = trace.circumstances.program.question  # type: ignore[union-attr]
    for side, token in (("token", question.token), ("rival", question.rival)):
        for position in range(trace.ids.shape[1]):
            total = trace[f"wrote.{side}.sum"].number((0, position))
            assert abs(total - logits.row(0, position)[token]) <= 1e-10


class Apart:
    """The parts of a logit from what a separate forward pass computed, position by position."""

    def __init__(self, model: Model, token: int) -> None:
        self.model, self.found = model, dict[tuple[str, int], Array]()
        self.logits = forward(model.config, model.parameters, IDS, self._keep)
        parameters, config = model.parameters, model.config
        self.row = parameters["embedding.weight" if config.tied_head else "lm_head.weight"][token]
        embedding = parameters["embedding.weight"][IDS]
        places = parameters["position_embedding.weight"][:len(IDS)] if config.positions == "learned" else 0.0
        branches = [self.found[name, layer] for name in ("attention", "mlp") for layer in range(config.layers)]
        stream = embedding + places + sum(branches)
        centered = stream - stream.mean(-1, keepdims=True) if config.norm == "layernorm" else stream
        self.scale = np.sqrt((centered**2).mean(-1) + config.norm_epsilon)

    def _keep(self, what: str, layer: int, array: Array) -> Array:
        self.found[what, layer] = array.copy()
        return array

    def worth(self, written: Array) -> Array:
        """What vectors [T,C] that were written into the stream give the logit, [T]: normed as they stand, then read."""
        config, weight = self.model.config, self.model.parameters.get("final_norm.weight")
        if config.norm == "none":
            return written @ self.row
        own = written - written.mean(-1, keepdims=True) if config.norm == "layernorm" else written
        assert weight is not None
        return np.array([(vector / scale * weight) @ self.row for vector, scale in zip(own, self.scale, strict=True)])

    def head(self, layer: int, head: int, outputs: Array | None = None) -> Array:
        D, name = self.model.config.head_size, f"layers.{layer}.attention.Wo"
        found = self.found["head", layer] if outputs is None else outputs
        return self.worth(found[head] @ self.model.parameters[name][head * D:(head + 1) * D])


@EVERY_ARCHITECTURE
def test_parts_are_what_a_separate_pass_wrote(changes: dict[str, object]) -> None:
    model = built(changes)
    trace, config, parameters = traced(model, IDS), model.config, model.parameters
    ones = np.ones((len(IDS), 1))
    for side, token in (("token", TOKEN), ("rival", RIVAL)):
        apart = Apart(model, token)
        want = {f"wrote.{side}.embedding": apart.worth(parameters["embedding.weight"][IDS])}
        if config.positions == "learned":
            want[f"wrote.{side}.positions"] = apart.worth(parameters["position_embedding.weight"][:len(IDS)])
        if config.norm == "layernorm":
            want[f"wrote.{side}.norm_bias"] = ones[:, 0] * (parameters["final_norm.bias"] @ apart.row)
        for layer in range(config.layers):
            here, mlp = f"layers.{layer}.wrote.{side}", f"layers.{layer}.mlp"
            want[f"{here}.mlp"] = apart.worth(apart.found["hidden", layer] @ parameters[f"{mlp}.W_down"])
            if config.bias:
                want[f"{here}.bo"] = apart.worth(ones * parameters[f"layers.{layer}.attention.bo"])
                want[f"{here}.b_down"] = apart.worth(ones * parameters[f"{mlp}.b_down"])
            for head in range(config.heads):
                actual = trace[f"{here}.heads"].data[0, head]
                np.testing.assert_allclose(actual, apart.head(layer, head), rtol=0, atol=1e-10)
        for name, numbers in want.items():
            np.testing.assert_allclose(trace[name].data[0], numbers, rtol=0, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(trace[f"wrote.{side}.sum"].data[0], apart.logits[:, token], rtol=0, atol=1e-10)
        # nothing was set by hand, and nothing else is a part
        assert not trace[f"wrote.{side}.by_hand"].data.any()
    assert_exact(trace)


@EVERY_ARCHITECTURE
def test_a_source_is_the_head_that_reads_it_alone(changes: dict[str, object]) -> None:
    """The head's part with all its other weights at 0, divided by what the norm of the full pass divides by."""
    model = built(changes)
    trace = traced(model, IDS)
    apart = Apart(model, TOKEN)
    for layer, head, key in ((0, 0, 0), (0, 1, 2), (1, 1, 3), (2, 0, 5), (2, 1, 6)):
        outputs: list[Array] = []

        def only(what: str, number: int, array: Array, layer: int = layer, key: int = key,
                 outputs: list[Array] = outputs) -> Array:
            if number != layer:
                return array
            if what == "head":
                outputs.append(array.copy())
            return np.where(np.arange(len(IDS)) == key, array, 0.0) if what == "weights" else array
        forward(model.config, model.parameters, IDS, only)
        np.testing.assert_allclose(
            trace[f"layers.{layer}.wrote.token.sources"].data[0, head, :, key], apart.head(layer, head, outputs[0]),
            rtol=0, atol=1e-10,
        )


def test_mats_by_hand(cats: Model) -> None:
    """Article: head row [0.2, 0.4, 0.1, 0.3], the embedding of `on` [0.1, 0.2, −0.2, 0.6], rms 4.2670, logit 0.9073."""
    trace = traced(cats, "Cats sit on", question=Question(90, 91))
    assert round(trace["wrote.token.sum"].data[0, 2], 4) == 0.9073
    assert round(trace["wrote.rival.sum"].data[0, 2], 4) == -0.0911
    assert round(trace["wrote.gap.sum"].data[0, 2], 4) == round(0.9073 + 0.0911, 4)
    by_hand = (0.1 * 0.2 + 0.2 * 0.4 - 0.2 * 0.1 + 0.6 * 0.3) / 4.2670
    np.testing.assert_allclose(trace["wrote.token.embedding"].data[0, 2], by_hand, rtol=0, atol=1e-5)
    # head 0 reads `Cats` with weight 0.1571, and its value [0.7303, −0.3651] is worth 0.2·0.7303 − 0.4·0.3651 = 0
    assert round(trace["layers.0.attention.weights"].data[0, 0, 2, 0], 4) == 0.1571
    np.testing.assert_allclose(trace["layers.0.wrote.token.sources"].data[0, 0, 2, 0], 0.0, rtol=0, atol=1e-15)


def settings() -> Iterator[tuple[str, dict[str, object]]]:
    for preset in presets.NAMES:
        yield preset, {}
        yield from ((preset, {field: value}) for field, values in SWITCHES.items() for value in values)
        yield preset, {"norm": "none", "norm_placement": "post", "bias": True}
        yield preset, ARCHITECTURES["GPT-2"] | {"max_positions": 32, "logit_soft_cap": 1.0}


@pytest.mark.parametrize(("preset", "changes"), [*settings()])
def test_it_adds_up_for_every_model(preset: str, changes: dict[str, object]) -> None:
    model = variant(presets.load(preset), **changes)
    sentence = presets.SENTENCES[preset]
    trace = traced(model, sentence)
    if not splits(model.config):
        assert not any("wrote" in name for name in trace)
        return
    assert_exact(trace)
    for text in (sentence.split()[0] if preset != "today" else "真", sentence + " " + sentence):
        assert_exact(traced(model, text))


def test_the_forward_pass_is_untouched(cats: Model, cats_trace: Trace) -> None:
    trace = traced(cats, "Cats sit on")
    assert [bits(trace[name]) for name in cats_trace] == [bits(tensor) for tensor in cats_trace.values()]


def test_a_batch_has_a_split_for_every_sentence() -> None:
    model = built(ARCHITECTURES["GPT-2"])
    batch = traced(model, [[1, 2, 3], [4, 2, 4]])
    for row, ids in enumerate(([1, 2, 3], [4, 2, 4])):
        alone = traced(model, ids)
        for name in ("wrote.gap.sum", "wrote.token.positions", "wrote.rival.norm_bias", "layers.1.wrote.token.sources"):
            np.testing.assert_allclose(batch[name].data[row], alone[name].data[0], rtol=0, atol=1e-12)


# what is set by hand → whether that is something written, and not one of the parts that it is made of
EDITS: tuple[tuple[str, tuple[int, ...], bool], ...] = (
    ("embedding.output", (0, 3, 2), False), ("embedding.sum", (0, 3, 2), True), ("embedding.weight", (1, 2), False),
    ("layers.0.attention.v_heads", (0, 1, 1, 3), False), ("layers.1.attention.weights", (0, 0, 3, 1), False),
    ("layers.1.attention.head_output", (0, 1, 3, 2), False), ("layers.1.attention.merged", (0, 3, 5), False),
    ("layers.1.attention.output", (0, 3, 4), True), ("layers.0.residual1", (0, 3, 1), True),
    ("layers.0.mlp.activation", (0, 3, 2), False), ("layers.2.mlp.output", (0, 3, 7), True),
    ("layers.2.output", (0, 3, 7), True), ("final_norm.output", (0, 3, 7), True),
    ("final_norm.normalized", (0, 3, 1), True),
    ("final_norm.weight", (3,), False), ("final_norm.std", (0, 3), False), ("final_norm.rms", (0, 3), False),
    ("final_norm.mean", (0, 3), True), ("logits", (0, 3, TOKEN), True), ("logits.uncapped", (0, 3, TOKEN), True),
    ("lm_head.weight", (TOKEN, 3), False), ("layers.1.norm2.rms", (0, 3), False),
)


@EVERY_ARCHITECTURE
def test_what_is_set_by_hand_is_a_part_of_its_own(changes: dict[str, object]) -> None:
    model = built(changes)
    plain = traced(model, IDS)
    capped = model.config.logit_soft_cap is not None
    for name, index, written in EDITS:
        if name not in plain:
            continue
        trace = traced(model, IDS, Edit(name, index, 1.7))
        # a capped logit set by hand lies behind what is split
        if not (capped and name == "logits"):
            assert_exact(trace)
            assert bool(trace["wrote.token.by_hand"].data[0, 3]) == written, name
        assert not trace["wrote.token.by_hand"].data[0, :3].any()
        inside = any(trace[f"layers.{layer}.wrote.token.sources_by_hand"].data.any() for layer in range(3))
        assert inside == name.endswith(("head_output", "merged"))


def test_what_was_put_into_the_stream_counts_along_the_direction() -> None:
    model = built({})
    name, index = "layers.0.residual1", (0, 3, 1)
    trace = traced(model, IDS, Edit(name, index, 1.7))
    put_in = 1.7 - trace[name].inputs[0].data[index]
    direction = model.parameters["lm_head.weight"][TOKEN, 1] * model.parameters["final_norm.weight"][1]
    want = put_in * direction / trace["final_norm.rms"].data[0, 3]
    np.testing.assert_allclose(trace["wrote.token.by_hand"].data[0, 3], want, rtol=1e-12)


def test_a_head_left_out_has_no_part(cats: Model) -> None:
    trace = traced(cats, "Cats sit on", Edit("layers.0.attention.head_output", (0, 1), 0.0), question=Question(90, 91))
    for side in SIDES:
        assert not trace[f"layers.0.wrote.{side}.heads"].data[0, 1].any()
    assert_exact(trace)


@pytest.mark.parametrize("name", ["GPT-2", "no norm", "own"])
def test_every_cell_explains_itself(name: str) -> None:
    model = built(ARCHITECTURES[name], hidden_size=4, mlp_size=3, layers=1)
    edit = Edit("layers.0.residual1", (0, 1, 1), 0.8)
    assert_explained(gradient(traced(model, [1, 4], edit), "wrote.gap.sum", (0, 1)))


@pytest.mark.parametrize(("target", "index"), [
    ("wrote.token.sum", (0, 4)), ("layers.1.wrote.gap.heads", (0, 1, 4)), ("wrote.rival.norm_bias", (0, 4)),
    ("layers.0.wrote.token.sources", (0, 0, 4, 2)), ("layers.2.wrote.rival.mlp", (0, 4)),
])
@pytest.mark.parametrize(("name", "cell"), [
    ("layers.0.attention.Wv", (3, 4)), ("embedding.weight", (1, 5)), ("final_norm.weight", (2,)),
    ("final_norm.bias", (2,)), ("layers.1.attention.Wo", (20, 5)), ("layers.2.mlp.b_down", (1,)),
])
def test_gradients_agree_with_differences(
    target: str, index: tuple[int, ...], name: str, cell: tuple[int, ...]
) -> None:
    trace = traced(built(ARCHITECTURES["GPT-2"]), IDS)
    found = gradient(trace, target, index).get(name)
    ours = 0.0 if found is None else found.data[cell]
    np.testing.assert_allclose(ours, slope(trace, target, index, name, cell), rtol=0, atol=1e-8)


def test_a_large_vocabulary_costs_no_more_than_a_row() -> None:
    today = presets.load("today")
    trace = traced(today, "今天天气真", question=Question(5120, 6144))
    made = (tensor for name, tensor in trace.items() if "wrote" in name and not tensor.is_deferred)
    assert max(prod(tensor.shape) for tensor in made) < today.config.vocab_size
    edited = traced(today, "今天天气真", Edit("embedding.weight", (5120, 3), 2.0), question=Question(5120, 6144))
    assert edited["wrote.token.head_row"].data[3] == 2.0
    np.testing.assert_array_equal(edited["wrote.rival.head_row"].data, trace["wrote.rival.head_row"].data)
    assert_exact(edited)


def test_names_do_not_depend_on_the_question(cats: Model) -> None:
    one, other = (traced(cats, "Cats sit on", question=question) for question in (Question(90, 91), Question(91, 90)))
    assert list(one) == list(other)
    for name in one:
        if "wrote.token" in name:
            np.testing.assert_array_equal(one[name].data, other[name.replace("wrote.token", "wrote.rival")].data)
            gap = name.replace("wrote.token", "wrote.gap")
            np.testing.assert_array_equal(one[gap].data, -other[gap].data)


def test_dropout_has_no_split() -> None:
    """In training each branch is thinned out before it is added."""
    trained = run(presets.load("today"), "今天", program=programs.of("wrote"), training=True)
    assert not any("wrote" in name for name in trained)
