"""Make ``gradients.npz``: cross-entropy and its gradient at every parameter and every tensor, from PyTorch.

The models are those of ``random_model.npz`` and of a few variants of ``gpt2_variants.npz``, with a batch of two
rows; their parameters and ids are in those files. As in ``make_reference.py``, the tests only read the arrays,
and nothing here imports the engine. Before anything is written, the loss must agree with its definition in
plain arithmetic, and every gradient with a central difference along a random direction.
See ``README.md`` for the layout of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping

import make_gpt2_reference as gpt2
import make_reference as llama
import numpy as np
import torch
import torch.nn.functional as F
from make_reference import TOLERANCE, Arrays, Tensors, assert_close, command, deliver, gradients
from torch import Tensor

# of the rows of ids, shifted by one; behind each its own end, the first and the last row of a vocabulary
TARGETS = {"random": [[17, 3, 29, 0, 36], [5, 5, 5, 11, 0]], "gpt2": [[17, 3, 9, 0, 22], [5, 5, 5, 11, 0]]}
VARIANTS = ("gpt2", "post_norm", "nanochat_like")
DIRECTION_SEED = 13
STEP, LOOSE = 1e-5, 1e-7
Forward = Callable[[Mapping[str, Tensor], Mapping[str, Tensor] | None], Tensors]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean over all positions of −ln p(target)."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def in_words(logits: Tensor, targets: Tensor) -> float:
    """Return the same by its definition, number by number."""
    surprises = [
        math.log(sum(math.exp(other) for other in row)) - row[target]
        for row, target in zip(logits.flatten(0, 1).tolist(), targets.flatten().tolist(), strict=True)
    ]
    return sum(surprises) / len(surprises)


def make_model(name: str, forward: Forward, drawn: Mapping[str, Tensor], targets: Tensor) -> Arrays:
    """Compute and check the loss of one model and all of its gradients."""
    parameters = {key: value.detach().clone().requires_grad_() for key, value in drawn.items()}
    trace = forward(parameters, None)
    loss = cross_entropy(trace["logits"], targets)
    by_definition = torch.tensor(in_words(trace["logits"], targets), dtype=torch.float64)
    assert_close(f"{name} loss", loss.detach(), by_definition, TOLERANCE)
    # what softmax gives the reader is not on the way to the loss, which starts from the logits
    found = gradients(loss, {**parameters, **trace})
    assert "probabilities" not in found
    generator = torch.Generator().manual_seed(DIRECTION_SEED)
    for key, gradient in found.items():
        direction = torch.randn(gradient.shape, generator=generator, dtype=gradient.dtype)
        ends = []
        for sign in (1.0, -1.0):
            nudge = {key: sign * STEP * direction}
            moved = {each: value + nudge[each] if each in nudge else value for each, value in drawn.items()}
            ends.append(cross_entropy(forward(moved, nudge)["logits"], targets))
        assert_close(f"{name} d/d {key}", (gradient * direction).sum(), (ends[0] - ends[1]) / (2 * STEP), LOOSE)
    return {f"{name}/loss": loss.detach().numpy()} | {
        f"{name}/gradients/{key}": gradient.numpy() for key, gradient in found.items()
    }


def make_reference() -> Arrays:
    """Compute, verify and return every array of the file."""
    arrays: Arrays = {"settings": np.array(json.dumps({"targets": TARGETS, "variants": VARIANTS}))}
    config = llama.Config()
    random = {name: torch.from_numpy(array) for name, array in llama.make_parameters(config).items()}
    arrays |= make_model(
        "random", lambda parameters, nudges: llama.traced_forward(
            config, parameters, torch.tensor(llama.IDS), "interleaved", nudges
        ), random, torch.tensor(TARGETS["random"]),
    )
    drawn = {name: torch.from_numpy(array) for name, array in gpt2.make_parameters().items()}
    for variant in VARIANTS:
        own = gpt2.Config(**gpt2.VARIANTS[variant])

        def forward(parameters: Mapping[str, Tensor], nudges: Mapping[str, Tensor] | None,
                    own: gpt2.Config = own) -> Tensors:
            return gpt2.traced_forward(own, parameters, torch.tensor(gpt2.IDS), nudges)
        arrays |= make_model(variant, forward, drawn, torch.tensor(TARGETS["gpt2"]))
    return arrays


def main() -> None:
    """Make the file, or with ``--check`` compare it with what would be made."""
    options = command("gradients.npz").parse_args()
    torch.set_num_threads(1)
    deliver(options, make_reference())


if __name__ == "__main__":
    main()
