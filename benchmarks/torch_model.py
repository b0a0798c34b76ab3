"""The same model in PyTorch's eager mode, one module a step, so that a hook on each sees every step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.bare import Constants
from engine import Model, ModelConfig
from engine.optimizers import SETTINGS
from engine.types import Array


def shared(array: Array, transpose: bool = False) -> nn.Parameter:
    """A parameter on the very memory of a NumPy array."""
    with warnings.catch_warnings():  # the engine's arrays are read-only, and nothing writes here
        warnings.simplefilter("ignore")
        tensor = torch.from_numpy(array)
    return nn.Parameter(tensor.T if transpose else tensor, requires_grad=False)


def linear(weight: Array, transpose: bool = True) -> nn.Linear:
    """x @ weight as a module; `transpose` is for the engine's [in, out] orientation."""
    module = nn.Linear(1, 1, bias=False)
    module.weight = shared(weight, transpose)
    return module


def rms_norm(weight: Array, epsilon: float) -> nn.RMSNorm:
    module = nn.RMSNorm(weight.shape, eps=epsilon)
    module.weight = shared(weight)
    return module


class Rotation(nn.Module):
    """RoPE on neighbouring features of [B,H,T,D]."""

    def __init__(self, fixed: Constants) -> None:
        super().__init__()
        angles = torch.outer(torch.tensor(fixed.positions + fixed.offset), torch.tensor(fixed.frequencies))
        self.cosines, self.sines = angles.cos(), angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        pair = (a * self.cosines - b * self.sines, a * self.sines + b * self.cosines)
        return torch.stack(pair, dim=-1).flatten(-2)


class Attention(nn.Module):
    """softmax(q·k / √D + mask) · v for every head, then Wo."""

    def __init__(self, model: Model, name: str, fixed: Constants) -> None:
        super().__init__()
        self.heads = model.config.heads
        self.Wq, self.Wk, self.Wv, self.Wo = (
            linear(model.parameters[f"{name}.{matrix}"]) for matrix in ("Wq", "Wk", "Wv", "Wo")
        )
        self.rotation = Rotation(fixed)
        self.mask = torch.tensor(fixed.causal_mask)
        self.sqrt_head_size = float(fixed.sqrt_head_size)
        self.softmax = nn.Softmax(dim=-1)

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.Wq(x)), self.split(self.Wk(x)), self.split(self.Wv(x))
        scores = self.rotation(q) @ self.rotation(k).transpose(-1, -2) / self.sqrt_head_size
        read: Tensor = self.softmax(scores + self.mask) @ v
        output: Tensor = self.Wo(read.transpose(1, 2).flatten(-2))
        return output


class Layer(nn.Module):
    """r = x + attention(norm1(x)); y = r + mlp(norm2(r))."""

    def __init__(self, model: Model, name: str, fixed: Constants) -> None:
        super().__init__()
        parameters, epsilon = model.parameters, model.config.norm_epsilon
        self.norm1 = rms_norm(parameters[f"{name}.norm1.weight"], epsilon)
        self.attention = Attention(model, f"{name}.attention", fixed)
        self.norm2 = rms_norm(parameters[f"{name}.norm2.weight"], epsilon)
        self.mlp = nn.Sequential(
            linear(parameters[f"{name}.mlp.W_up"]), nn.ReLU(), linear(parameters[f"{name}.mlp.W_down"]),
        )

    def forward(self, x: Tensor) -> Tensor:
        r = x + self.attention(self.norm1(x))
        output: Tensor = r + self.mlp(self.norm2(r))
        return output


class TorchModel(nn.Module):
    """Logits and probabilities; with `record`, a forward hook on every module keeps its output."""

    def __init__(self, model: Model, fixed: Constants, record: bool) -> None:
        super().__init__()
        parameters, config = model.parameters, model.config
        self.embedding = nn.Embedding(1, 1)
        self.embedding.weight = shared(parameters["embedding.weight"])
        self.layers = nn.Sequential(*self._layers(model, config, fixed))
        self.final_norm = rms_norm(parameters["final_norm.weight"], config.norm_epsilon)
        self.lm_head = linear(parameters["lm_head.weight"], transpose=False)
        self.softmax = nn.Softmax(dim=-1)
        self.recorded: dict[str, Tensor] = {}
        if record:
            for name, module in self.named_modules():
                if name:
                    module.register_forward_hook(self._recorder(name))

    @staticmethod
    def _layers(model: Model, config: ModelConfig, fixed: Constants) -> list[Layer]:
        return [Layer(model, f"layers.{number}", fixed) for number in range(config.layers)]

    def _recorder(self, name: str) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            self.recorded[name] = output
        return hook

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.lm_head(self.final_norm(self.layers(self.embedding(ids))))
        return logits, self.softmax(logits)


def trainer(model: Model, fixed: Constants, ids: Array, targets: list[list[int]]) -> Callable[[], float]:
    """A step of AdamW with clipping on a copy of the parameters; it returns the loss before the step."""
    module = TorchModel(model, fixed, record=False)
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()
        parameter.requires_grad_()
    optimizer = torch.optim.AdamW(module.parameters(), lr=SETTINGS["learning_rate"],
                                  weight_decay=SETTINGS["weight_decay"])
    tokens, wanted = torch.tensor(ids), torch.tensor(targets).flatten()

    def train() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(tokens)[0].flatten(0, 1), wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(module.parameters(), SETTINGS["clip"])
        optimizer.step()
        return loss.item()
    return train
