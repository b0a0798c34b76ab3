"""Make ``gpt2_parts.npz``: what PyTorch gives for the parts that the lessons take one at a time.

As in ``make_reference.py``, whose helpers it uses: the tests only read the arrays, and nothing
here imports the engine. Every result is worked out a second time, from its definition in scalars
or from the gradient by hand, and must agree before anything is written.
See ``README.md`` for the layout of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from make_reference import GRID, TOLERANCE, Arrays, assert_close, command, deliver
from torch import Tensor

SEED = 20240718
EPSILON = 1e-5
DROPPED = 0.25
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "relu_squared": lambda x: F.relu(x).square(),
}


def in_scalars(kind: str, x: float) -> tuple[float, float]:
    """Return a function and its derivative at x, from the formulas."""
    if kind == "relu":
        return max(0.0, x), float(x > 0)
    if kind == "relu_squared":
        return max(0.0, x) ** 2, 2 * max(0.0, x)
    if kind == "gelu_erf":
        share = (1 + math.erf(x / math.sqrt(2))) / 2
        return x * share, share + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    root = math.sqrt(2 / math.pi)
    bend = math.tanh(root * (x + 0.044715 * x**3))
    return x * (1 + bend) / 2, (1 + bend) / 2 + x * (1 - bend**2) * root * (1 + 3 * 0.044715 * x**2) / 2


def make_activations() -> Arrays:
    """Return the four functions and their derivatives by autograd, −4 to 4 in steps of 0.1."""
    x = (torch.arange(-40, 41, dtype=torch.float64) / 10).requires_grad_()
    arrays: Arrays = {"activations/x": x.detach().numpy()}
    for kind, function in FUNCTIONS.items():
        value = function(x)
        (derivative,) = torch.autograd.grad(value.sum(), x)
        expected = torch.tensor([in_scalars(kind, z) for z in x.tolist()], dtype=torch.float64)
        for name, found, again in zip(("value", "derivative"), (value.detach(), derivative), expected.T, strict=True):
            assert_close(f"{kind} {name}", found, again, TOLERANCE)
            arrays[f"activations/{kind}/{name}"] = found.numpy()
    return arrays


def make_norms(x: Tensor, weight: Tensor, bias: Tensor) -> Arrays:
    """Return LayerNorm and RMSNorm of the same vectors."""
    width = (x.shape[-1],)
    layer, rms = F.layer_norm(x, width, weight, bias, EPSILON), F.rms_norm(x, width, weight, EPSILON)
    centered = x - x.mean(-1, keepdim=True)
    spread = torch.sqrt((centered**2).mean(-1, keepdim=True) + EPSILON)
    assert_close("layer_norm", layer, centered / spread * weight + bias, TOLERANCE)
    assert_close("rms_norm", rms, x / torch.sqrt((x**2).mean(-1, keepdim=True) + EPSILON) * weight, TOLERANCE)
    return {"norms/layer_norm": layer.numpy(), "norms/rms_norm": rms.numpy()}


def make_unit_gradients(up: Tensor, matrix: Tensor) -> Arrays:
    """Return, for ReLU and GELU, the gradient of the sum of all outputs of an MLP by each unit's bias."""
    arrays: Arrays = {}
    for name, kind in (("relu", "relu"), ("gelu", "gelu_tanh")):
        bias = torch.zeros(up.shape[-1], dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad((FUNCTIONS[kind](up + bias) @ matrix).sum(), bias)
        slopes = torch.tensor([[in_scalars(kind, z)[1] for z in row] for row in up.tolist()], dtype=torch.float64)
        assert_close(f"{name} gradient", gradient, slopes.sum(0) * matrix.sum(1), TOLERANCE)
        arrays[f"units/{name}_gradient"] = gradient.numpy()
    return arrays


def make_dropout(x: Tensor) -> Arrays:
    """Return what ``F.dropout`` makes of x in training; at inference it must leave x alone."""
    torch.manual_seed(SEED)
    dropped = F.dropout(x, DROPPED, training=True)
    kept = dropped != 0
    assert 0 < int(kept.sum()) < kept.numel(), "nothing to see"
    assert_close("dropout", dropped, torch.where(kept, x / (1 - DROPPED), 0.0), TOLERANCE)
    assert torch.equal(F.dropout(x, DROPPED, training=False), x)
    return {"dropout/p": np.array(DROPPED), "dropout/x": x.numpy(), "dropout/training": dropped.numpy()}


def make_reference() -> Arrays:
    """Compute, verify and return every array of the file."""
    generator = np.random.default_rng(SEED)

    def draw(*shape: int) -> Tensor:
        return torch.from_numpy(np.round(generator.standard_normal(shape) / GRID) * GRID)

    x, weight, bias = draw(3, 8) * 2 + 1, 1 + draw(8) / 4, draw(8)
    up, matrix = draw(3, 10) - 1, draw(10, 8)
    assert (up.max(0).values < 0).any(), "no unit is dead"
    given = {"norms/x": x, "norms/weight": weight, "norms/bias": bias, "units/up": up, "units/W_down": matrix}
    return {
        **make_activations(), **{name: tensor.numpy() for name, tensor in given.items()},
        **make_norms(x, weight, bias), **make_unit_gradients(up, matrix), **make_dropout(draw(3, 8)),
    }


def main() -> None:
    """Make the file, or with ``--check`` compare it with what would be made."""
    options = command("gpt2_parts.npz").parse_args()
    torch.set_num_threads(1)
    deliver(options, make_reference())


if __name__ == "__main__":
    main()
