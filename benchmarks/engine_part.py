"""The engine beside the same NumPy code without provenance, and beside PyTorch with hooks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import bare
from benchmarks.timing import compare, interleaved, median, milliseconds, spread, table
from engine import Edit, Model, ModelConfig, Trace, explain, gradient, presets, run
from engine.gradient import backward_plan
from engine.trace import forward_plan, read_ids
from engine.training import Setting, after, start, step
from engine.types import Integers

GPT2_SMALL = ModelConfig(vocab_size=50257, hidden_size=768, layers=12, heads=12, mlp_size=3072)
GPT2_TOKENS = 64
COLD_ROUNDS = 20
Call = Callable[[], object]


def measure(seconds: float) -> None:
    """Print the engine's figures at both sizes."""
    cats = presets.load("cats")
    ids = read_ids(cats, presets.SENTENCES["cats"])
    _forward("Cats sit on: C=4, N=2, V=256, T=3, float64", cats, ids, seconds)
    _edits("Cats sit on: one cell changes, the rest from the last run", cats, ids, seconds, {
        "Wq of layer 1": "layers.0.attention.Wq", "Wq of layer 2": "layers.1.attention.Wq",
        "lm_head.weight": "lm_head.weight",
    })
    _questions(cats, ids, seconds)
    _training(cats, ids, seconds / 4)

    large = _random(GPT2_SMALL)
    ids = np.random.default_rng(2).integers(0, GPT2_SMALL.vocab_size, (1, GPT2_TOKENS))
    _forward(f"GPT-2-small size: C=768, N=12, V=50257, T={GPT2_TOKENS}, float32", large, ids, seconds)
    _edits("GPT-2-small size: one cell changes, the rest from the last run", large, ids, seconds, {
        "Wq of layer 1": "layers.0.attention.Wq", "Wq of layer 12": "layers.11.attention.Wq",
        "embedding.weight": "embedding.weight",
    })


def _random(config: ModelConfig) -> Model:
    """Float32 weights of GPT-2's spread."""
    generator = np.random.default_rng(1)
    return Model(config, {
        name: np.ones(shape, np.float32) if "norm" in name
        else generator.standard_normal(shape, np.float32) * np.float32(0.02)
        for name, shape in config.parameter_shapes().items()
    })


def _forward(title: str, model: Model, ids: Integers, seconds: float) -> None:
    fixed = bare.constants(model.config, ids.shape[1], model.dtype)
    trace = run(model, ids)
    logits, probabilities = bare.forward(model, fixed, ids)
    if not (np.array_equal(trace["logits"].data, logits)
            and np.array_equal(trace["probabilities"].data, probabilities)):
        raise AssertionError("the bare NumPy code does not give the engine's numbers bit for bit")
    candidates: dict[str, Call] = {
        "bare NumPy": lambda: bare.forward(model, fixed, ids), "traced": lambda: run(model, ids),
    }
    candidates |= _torch(model, fixed, ids, trace)
    compare(title, interleaved(candidates, seconds), "bare NumPy")


def _torch(model: Model, fixed: bare.Constants, ids: Integers, trace: Trace) -> dict[str, Call]:
    try:
        import torch

        from benchmarks.torch_model import TorchModel
    except ImportError:
        print("\n(PyTorch is not installed: its rows are left out; pip install torch)")
        return {}
    tokens = torch.tensor(ids)

    def caller(record: bool) -> Call:
        module = TorchModel(model, fixed, record).eval()

        def call() -> Any:
            with torch.no_grad():
                return module(tokens)
        for ours, theirs in zip(("logits", "probabilities"), call(), strict=True):
            relative, absolute = (1e-3, 1e-5) if model.dtype == np.float32 else (1e-10, 1e-12)
            if not np.allclose(trace[ours].data, theirs.numpy(), relative, absolute):
                raise AssertionError(f"PyTorch's {ours} are not the engine's")
        return call
    return {"PyTorch, hooks": caller(record=True), "PyTorch, no hooks": caller(record=False)}


def _edits(title: str, model: Model, ids: Integers, seconds: float, places: dict[str, str]) -> None:
    """Reruns that reuse what lies upstream of an edit, beside the full run with the same edit."""
    rows = []
    for label, name in places.items():
        row = int(ids[0, 0]) if name == "embedding.weight" else 0
        samples = interleaved(_rerun_and_full(model, ids, name, row), seconds / len(places))
        rerun, full = (median(samples[kind]) for kind in ("rerun", "full run"))
        rows.append((label, milliseconds(rerun), milliseconds(full), f"{rerun / full:.2f}",
                     len(samples["rerun"])))
    table(title, ("rerun ms", "full run ms", "rerun ÷ full", "runs"), rows)


def _rerun_and_full(model: Model, ids: Integers, name: str, row: int) -> dict[str, Call]:
    edits = {value: (Edit(name, (row, 1), value),) for value in (0.25, 0.5)}
    values = cycle(edits)
    last = run(model, ids, edits=edits[0.5])
    again = run(model, ids, edits=edits[0.25], base=last)
    if not np.array_equal(again["logits"].data, run(model, ids, edits=edits[0.25])["logits"].data):
        raise AssertionError(f"a rerun after an edit of {name} does not equal a full run")

    def rerun() -> None:
        nonlocal last
        last = run(model, ids, edits=edits[next(values)], base=last)
    return {"rerun": rerun, "full run": lambda: run(model, ids, edits=edits[0.25])}


def _questions(model: Model, ids: Integers, seconds: float) -> None:
    """What a reader asks of a run, and what the first of each kind costs."""
    trace = run(model, ids)
    cell = (0, ids.shape[1] - 1, 90)

    def first_run() -> None:
        forward_plan.cache_clear()
        run(model, ids)

    def first_gradient() -> None:
        backward_plan.cache_clear()
        gradient(trace, "logits", cell)
    samples = interleaved({
        "explain one logit": lambda: explain(trace, "logits", cell),
        "explain and evaluate": lambda: explain(trace, "logits", cell).evaluate(),
        "gradient of a logit": lambda: gradient(trace, "logits", cell),
    }, seconds / 4)
    samples |= {
        "first run of a shape (plan built)": _cold(first_run),
        "first gradient (plan built)": _cold(first_gradient),
    }
    table("Cats sit on: questions to a run, and first times", ("p5 ms", "median ms", "p95 ms", "runs"), [
        (name, *map(milliseconds, spread(times)), len(times))
        for name, times in samples.items()
    ])


def _training(model: Model, ids: Integers, seconds: float) -> None:
    """One step of AdamW with clipping, every number of it recorded, beside PyTorch, which records none."""
    targets = [[*ids[0, 1:].tolist(), presets.TARGETS["cats"]]]
    first, setting = start(model), Setting(clips=True)
    candidates: dict[str, Call] = {"traced": lambda: after(step(first, ids, targets, setting), setting.kind)}
    try:
        from benchmarks.torch_model import trainer
    except ImportError:
        pass
    else:
        train = trainer(model, bare.constants(model.config, ids.shape[1], model.dtype), ids, targets)
        if not np.isclose(train(), step(first, ids, targets, setting)["loss"].number(()), rtol=1e-12):
            raise AssertionError("PyTorch's loss is not the engine's")
        candidates["PyTorch"] = train
    compare("Cats sit on: one step of training", interleaved(candidates, seconds), "traced")


def _cold(call: Call) -> list[float]:
    times = []
    for _ in range(COLD_ROUNDS):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return times
