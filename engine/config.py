"""The sizes and choices that define a model, frozen and checked."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ConfigError

NORMS = ("rmsnorm",)
POSITIONS = ("rope",)
PAIRINGS = ("interleaved", "half")
ACTIVATIONS = ("relu",)


@dataclass(frozen=True)
class ModelConfig:
    """Sizes V, C, N, H, F and the architecture's choices; D = C / H follows from them.

    Raises `ConfigError` for a size below one, for C not divisible by H, for an odd head size
    with RoPE (a rotation needs pairs) and for a choice that the engine does not know.
    Source: "GPT Model", section on structure and data flow.
    """

    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    mlp_size: int
    norm: str = "rmsnorm"
    norm_epsilon: float = 1e-6
    positions: str = "rope"
    rope_base: float = 10000.0
    # interleaved turns neighbours (0,1),(2,3); half turns (0,D/2),(1,D/2+1)
    rope_pairing: str = "interleaved"
    activation: str = "relu"
    bias: bool = False
    tied_head: bool = False

    def __post_init__(self) -> None:
        for field in ("vocab_size", "hidden_size", "layers", "heads", "mlp_size"):
            size = getattr(self, field)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ConfigError(
                    "size", f"{field} must be a whole number of at least 1, not {size!r}",
                    field=field, value=size,
                )
        if self.hidden_size % self.heads:
            raise ConfigError(
                "heads_do_not_divide",
                f"hidden_size C={self.hidden_size} is not divisible by heads H={self.heads}",
                hidden_size=self.hidden_size, heads=self.heads,
            )
        if self.positions == "rope" and self.head_size % 2:
            raise ConfigError(
                "odd_head_size",
                f"RoPE turns pairs: head size D = C/H = {self.head_size} must be even",
                head_size=self.head_size,
            )
        self._check_choices()
        for field in ("norm_epsilon", "rope_base"):
            number = getattr(self, field)
            if not 0 < number < float("inf"):
                raise ConfigError(
                    "positive", f"{field} must be positive and finite, not {number!r}",
                    field=field, value=number,
                )

    def _check_choices(self) -> None:
        choices = (
            ("norm", NORMS), ("positions", POSITIONS), ("rope_pairing", PAIRINGS),
            ("activation", ACTIVATIONS), ("bias", (False,)), ("tied_head", (False,)),
        )
        for field, allowed in choices:
            value = getattr(self, field)
            if value not in allowed:
                raise ConfigError(
                    "choice", f"{field}={value!r} is not one of {allowed}",
                    field=field, value=value, allowed=allowed,
                )

    @property
    def head_size(self) -> int:
        """D = C / H."""
        return self.hidden_size // self.heads

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every parameter, in the order in which the forward pass meets them."""
        V, C, F = self.vocab_size, self.hidden_size, self.mlp_size
        shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (V, C)}
        for layer in range(self.layers):
            shapes[f"layers.{layer}.norm1.weight"] = (C,)
            for matrix in ("Wq", "Wk", "Wv", "Wo"):
                shapes[f"layers.{layer}.attention.{matrix}"] = (C, C)
            shapes[f"layers.{layer}.norm2.weight"] = (C,)
            shapes[f"layers.{layer}.mlp.W_up"] = (C, F)
            shapes[f"layers.{layer}.mlp.W_down"] = (F, C)
        shapes["final_norm.weight"] = (C,)
        shapes["lm_head.weight"] = (V, C)
        return shapes
