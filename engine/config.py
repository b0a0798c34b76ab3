"""The sizes and choices that define a model, frozen and checked."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ConfigError

NORMS = ("rmsnorm", "layernorm", "none")
PLACEMENTS = ("pre", "post")
POSITIONS = ("rope", "learned", "none")
PAIRINGS = ("interleaved", "half")
ACTIVATIONS = ("relu", "gelu_tanh", "gelu_erf", "relu_squared", "none")


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
    # pre normalises what a branch reads, post what the addition gives
    norm_placement: str = "pre"
    norm_epsilon: float = 1e-6
    positions: str = "rope"
    # rows of a learned position table; None where positions have no bound
    max_positions: int | None = None
    rope_base: float = 10000.0
    # interleaved turns neighbours (0,1),(2,3); half turns (0,D/2),(1,D/2+1)
    rope_pairing: str = "interleaved"
    # the sign of angle = ±position · frequency
    rope_direction: int = 1
    activation: str = "relu"
    bias: bool = False
    tied_head: bool = False
    causal: bool = True
    scale_scores: bool = True
    residual: bool = True
    # q and k divided by their own rms over the head's features, after the rotation
    qk_norm: bool = False
    # logits become cap · tanh(logit / cap)
    logit_soft_cap: float | None = None
    # share of a branch's cells set to zero in training
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for field in ("vocab_size", "hidden_size", "layers", "heads", "mlp_size"):
            self._check_size(field)
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
        self._check_numbers()

    def _check_size(self, field: str) -> None:
        size = getattr(self, field)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ConfigError(
                "size", f"{field} must be a whole number of at least 1, not {size!r}",
                field=field, value=size,
            )

    def _check_choices(self) -> None:
        switches = ("bias", "tied_head", "causal", "scale_scores", "residual", "qk_norm")
        choices: tuple[tuple[str, tuple[object, ...]], ...] = (
            ("norm", NORMS), ("norm_placement", PLACEMENTS), ("positions", POSITIONS),
            ("rope_pairing", PAIRINGS), ("rope_direction", (1, -1)), ("activation", ACTIVATIONS),
            *((field, (True, False)) for field in switches),
        )
        for field, allowed in choices:
            value = getattr(self, field)
            if value not in allowed:
                raise ConfigError(
                    "choice", f"{field}={value!r} is not one of {allowed}",
                    field=field, value=value, allowed=allowed,
                )

    def _check_numbers(self) -> None:
        for field in ("norm_epsilon", "rope_base", "logit_soft_cap"):
            number = getattr(self, field)
            if number is not None and not 0 < number < float("inf"):
                raise ConfigError(
                    "positive", f"{field} must be positive and finite, not {number!r}",
                    field=field, value=number,
                )
        if not 0 <= self.dropout < 1:
            raise ConfigError("dropout", f"dropout must be in 0 ≤ p < 1, not {self.dropout!r}", value=self.dropout)
        if self.positions == "learned" and self.max_positions is None:
            raise ConfigError("max_positions", "learned positions need max_positions, the rows of their table")
        if self.max_positions is not None:
            self._check_size("max_positions")

    @property
    def head_size(self) -> int:
        """D = C / H."""
        return self.hidden_size // self.heads

    @property
    def head_table(self) -> str:
        """The name of the table that the logits come from; a tied head reads the embedding's."""
        return "embedding.weight" if self.tied_head else "lm_head.weight"

    def stream_into(self, layer: int) -> str:
        """The name of what enters a layer: the layer before's output, or the embedding with its positions."""
        if layer:
            return f"layers.{layer - 1}.output"
        return "embedding.sum" if self.positions == "learned" else "embedding.output"

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every parameter, in the order in which the forward pass meets them."""
        V, C, F = self.vocab_size, self.hidden_size, self.mlp_size
        shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (V, C)}
        if self.positions == "learned":
            assert self.max_positions is not None
            shapes["position_embedding.weight"] = (self.max_positions, C)
        for layer in range(self.layers):
            shapes |= self._norm_shapes(f"layers.{layer}.norm1")
            shapes |= self._matrix_shapes(f"layers.{layer}.attention", {
                ("Wq", "bq"): (C, C), ("Wk", "bk"): (C, C), ("Wv", "bv"): (C, C), ("Wo", "bo"): (C, C),
            })
            shapes |= self._norm_shapes(f"layers.{layer}.norm2")
            shapes |= self._matrix_shapes(f"layers.{layer}.mlp", {
                ("W_up", "b_up"): (C, F), ("W_down", "b_down"): (F, C),
            })
        shapes |= self._norm_shapes("final_norm")
        if not self.tied_head:
            shapes["lm_head.weight"] = (V, C)
        return shapes

    def _norm_shapes(self, name: str) -> dict[str, tuple[int, ...]]:
        if self.norm == "none":
            return {}
        parts = ("weight", "bias") if self.norm == "layernorm" else ("weight",)
        return {f"{name}.{part}": (self.hidden_size,) for part in parts}

    def _matrix_shapes(self, name: str, matrices: dict[tuple[str, str], tuple[int, int]]) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for (weight, bias), shape in matrices.items():
            shapes[f"{name}.{weight}"] = shape
            if self.bias:
                shapes[f"{name}.{bias}"] = shape[1:]
        return shapes
