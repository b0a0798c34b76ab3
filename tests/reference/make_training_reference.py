"""Make ``training.npz``: losses, gradients and parameters of small training runs, from PyTorch.

As in ``make_reference.py``, whose forward it uses: the tests only read the arrays, and nothing here
imports the engine. Two models, a batch of two rows with repeated tokens, and runs of 100 steps under
``torch.optim.SGD`` and ``torch.optim.AdamW``, with and without ``clip_grad_norm_``. Each run is made a
second time with the update rules written out by hand, as the papers have them, and must agree to 1e-11
(`bk` to 1e-8: nothing depends on it without a rotation, and AdamW blows up the rounding that is left);
every gradient at the start must agree with a central difference.
See ``README.md`` for the layout of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import make_gpt2_reference as gpt2
import make_reference as llama
import numpy as np
import torch
import torch.nn.functional as F
from make_reference import GRID, Arrays, assert_close, command, deliver
from torch import Tensor

SEED = 20240801
STEPS = 100
# both ways of making a step round on their own for a hundred steps
TOLERANCE, LOOSE = 1e-11, 1e-8
EPSILON = 1e-8
CLIP_EPSILON = 1e-6  # as in torch.nn.utils.clip_grad_norm_

IDS = [[3, 1, 3, 0, 5], [8, 2, 2, 2, 4]]
TARGETS = [[1, 3, 0, 5, 7], [2, 2, 2, 4, 8]]
LLAMA = llama.Config(vocab_size=9, hidden_size=32, layers=1, heads=2, mlp_size=12)
GPT2 = gpt2.Config(**{**gpt2.GPT2, "vocab_size": 9, "hidden_size": 8, "layers": 2, "heads": 2, "mlp_size": 12,
                      "max_positions": 6})
# model → run → optimizer, its settings, and the limit of the gradients' joint length
Run = dict[str, Any]
RUNS: dict[str, dict[str, Run]] = {
    "llama": {
        "adamw_clipped": {"kind": "adamw", "learning_rate": 0.01, "weight_decay": 0.1, "clip": 0.5},
        "momentum": {"kind": "momentum", "learning_rate": 0.02, "momentum": 0.9},
        "sgd_clipped": {"kind": "sgd", "learning_rate": 0.1, "clip": 0.5},
    },
    "gpt2": {
        "adamw": {"kind": "adamw", "learning_rate": 0.01, "beta1": 0.8, "beta2": 0.98, "weight_decay": 0.05},
        "adamw_clipped": {"kind": "adamw", "learning_rate": 0.01, "weight_decay": 0.01, "clip": 0.5},
        "momentum_clipped": {"kind": "momentum", "learning_rate": 0.05, "momentum": 0.8, "clip": 0.5},
        "sgd": {"kind": "sgd", "learning_rate": 0.05},
    },
}
Loss = Callable[[Mapping[str, Tensor]], Tensor]


def shapes(model: str) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter, in forward order."""
    config: Any = {"llama": LLAMA, "gpt2": GPT2}[model]
    vocab, hidden, mlp = config.vocab_size, config.hidden_size, config.mlp_size
    biased = model == "gpt2"

    def norm(name: str) -> dict[str, tuple[int, ...]]:
        return {f"{name}.{part}": (hidden,) for part in (("weight", "bias") if biased else ("weight",))}

    def matrix(name: str, weight: str, bias: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.{weight}": (rows, columns)} | ({f"{name}.{bias}": (columns,)} if biased else {})

    found: dict[str, tuple[int, ...]] = {"embedding.weight": (vocab, hidden)}
    if biased:
        found["position_embedding.weight"] = (config.max_positions, hidden)
    for index in range(config.layers):
        layer = f"layers.{index}"
        found |= norm(f"{layer}.norm1")
        for part in "qkvo":
            found |= matrix(f"{layer}.attention", f"W{part}", f"b{part}", hidden, hidden)
        found |= norm(f"{layer}.norm2")
        found |= matrix(f"{layer}.mlp", "W_up", "b_up", hidden, mlp)
        found |= matrix(f"{layer}.mlp", "W_down", "b_down", mlp, hidden)
    found |= norm("final_norm")
    return found if biased else {**found, "lm_head.weight": (vocab, hidden)}


def make_parameters(model: str) -> Arrays:
    """Draw every parameter from one seeded generator; norm weights lie about one."""
    generator = np.random.default_rng(SEED)
    drawn: Arrays = {}
    for name, shape in shapes(model).items():
        is_gain = "norm" in name and name.endswith("weight")
        scale = 0.3 if len(shape) == 1 else shape[-1] ** -0.5
        values = float(is_gain) + scale * generator.standard_normal(shape)
        drawn[name] = np.asarray(np.round(values / GRID) * GRID, dtype=np.float64)
    return drawn


def loss_of(model: str) -> Loss:
    """Return the cross-entropy of the batch, mean over all positions, as a function of the parameters."""
    ids, targets = torch.tensor(IDS), torch.tensor(TARGETS)

    def loss(parameters: Mapping[str, Tensor]) -> Tensor:
        if model == "llama":
            logits = llama.traced_forward(LLAMA, parameters, ids, "interleaved")["logits"]
        else:
            logits = gpt2.traced_forward(GPT2, parameters, ids)["logits"]
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    return loss


def gradients_at(loss: Loss, arrays: Arrays) -> tuple[float, dict[str, Tensor]]:
    """Return the loss and its gradient at every parameter, each checked against a central difference."""
    parameters = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    value = loss(parameters)
    found = dict(zip(parameters, torch.autograd.grad(value, tuple(parameters.values())), strict=True))
    generator = torch.Generator().manual_seed(SEED)
    step = 1e-5
    for name, gradient in found.items():
        direction = torch.randn(gradient.shape, generator=generator, dtype=gradient.dtype)
        ends = [
            loss({**parameters, name: parameters[name].detach() + sign * step * direction}).detach()
            for sign in (1.0, -1.0)
        ]
        assert_close(f"d/d {name}", (gradient * direction).sum(), (ends[0] - ends[1]) / (2 * step), 1e-7)
    return value.item(), found


def trained(loss: Loss, arrays: Arrays, run: Run) -> tuple[list[float], Arrays]:
    """Return the loss before each step, and the parameters after the last, by PyTorch's own optimizer."""
    parameters = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    optimizer: torch.optim.Optimizer
    if run["kind"] == "adamw":
        optimizer = torch.optim.AdamW(
            parameters.values(), lr=run["learning_rate"], betas=(run.get("beta1", 0.9), run.get("beta2", 0.999)),
            eps=EPSILON, weight_decay=run["weight_decay"],
        )
    else:
        optimizer = torch.optim.SGD(parameters.values(), lr=run["learning_rate"], momentum=run.get("momentum", 0.0))
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(parameters)
        value.backward()  # type: ignore[no-untyped-call]
        if "clip" in run:
            torch.nn.utils.clip_grad_norm_(parameters.values(), run["clip"])
        optimizer.step()
        losses.append(value.item())
    return losses, {name: value.detach().numpy() for name, value in parameters.items()}


def trained_by_hand(loss: Loss, arrays: Arrays, run: Run) -> Arrays:
    """Return the parameters after the last step, by the rules of the papers."""
    parameters = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    memory = {name: torch.zeros_like(value) for name, value in parameters.items()}
    squares = {name: torch.zeros_like(value) for name, value in parameters.items()}
    rate, beta1, beta2 = run["learning_rate"], run.get("beta1", 0.9), run.get("beta2", 0.999)
    for step in range(1, STEPS + 1):
        leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        found = torch.autograd.grad(loss(leaves), tuple(leaves.values()))
        length = math.sqrt(sum(float((gradient**2).sum()) for gradient in found))
        factor = min(1.0, run["clip"] / (length + CLIP_EPSILON)) if "clip" in run else 1.0
        for name, raw in zip(leaves, found, strict=True):
            gradient = raw * factor
            if run["kind"] == "adamw":
                memory[name] = beta1 * memory[name] + (1 - beta1) * gradient
                squares[name] = beta2 * squares[name] + (1 - beta2) * gradient**2
                mean = memory[name] / (1 - beta1**step)
                spread = (squares[name] / (1 - beta2**step)).sqrt()
                shrunk = parameters[name] - rate * run["weight_decay"] * parameters[name]
                parameters[name] = shrunk - rate * mean / (spread + EPSILON)
            else:
                memory[name] = run.get("momentum", 0.0) * memory[name] + gradient
                parameters[name] = parameters[name] - rate * memory[name]
    return {name: value.numpy() for name, value in parameters.items()}


def make_reference() -> Arrays:
    """Compute, verify and return every array of the file."""
    settings = {
        "configs": {
            "llama": asdict(LLAMA),
            "gpt2": {name: value for name, value in asdict(GPT2).items() if not name.startswith("rope")},
        },
        "runs": RUNS, "steps": STEPS, "parameter_seed": SEED,
    }
    arrays: Arrays = {"settings": np.array(json.dumps(settings)), "ids": np.array(IDS), "targets": np.array(TARGETS)}
    for model, runs in RUNS.items():
        drawn, loss = make_parameters(model), loss_of(model)
        value, found = gradients_at(loss, drawn)
        arrays |= {f"{model}/parameters/{name}": array for name, array in drawn.items()}
        arrays |= {f"{model}/gradients/{name}": gradient.numpy() for name, gradient in found.items()}
        for name, run in runs.items():
            losses, ends = trained(loss, drawn, run)
            assert losses[0] == value
            assert losses[-1] < losses[0] / 2, f"{model} {name} learns nothing: {losses[-1]}"
            for parameter, by_hand in trained_by_hand(loss, drawn, run).items():
                tolerance = LOOSE if parameter.endswith(".bk") else TOLERANCE
                assert_close(f"{model} {name} {parameter}", torch.from_numpy(ends[parameter]),
                             torch.from_numpy(by_hand), tolerance)
            arrays[f"{model}/{name}/losses"] = np.array(losses)
            arrays |= {f"{model}/{name}/parameters/{parameter}": end for parameter, end in ends.items()}
    return arrays


def main() -> None:
    """Make the file, or with ``--check`` compare it with what would be made."""
    options = command("training.npz").parse_args()
    torch.set_num_threads(1)
    deliver(options, make_reference())


if __name__ == "__main__":
    main()
