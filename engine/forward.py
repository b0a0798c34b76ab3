"""The forward pass of a GPT, as the article's pseudocode has it: token ids in, logits out.

Every function takes values and returns values; what it records is an entry of the trace. Sizes:
B batch, T positions, C features, H heads, D = C/H, F hidden units, V vocabulary, N layers.
"""

from __future__ import annotations

from engine.blocks import contract, head, merge_heads, softmax, split_heads
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.recipe import Recipe


def gpt(scope: Scope, config: ModelConfig, batch: int, length: int, training: bool = False,
        past: int = 0) -> Value:
    """Return the logits [B,T,V] of ids [B,T], which stand behind `past` positions kept in a cache.

    Source: "Forward: structure and data flow of a GPT".
    """
    hidden_states = embed(scope, config, batch, length, past)
    recipe = Recipe(scope, config, batch, length, training, past)
    stream = transformer(scope, recipe, hidden_states)
    normed = recipe.norm(scope.at("final_norm"), stream)
    logits = lm_head(scope, recipe, normed)
    softmax(scope, "probabilities", logits, "vocabulary")
    return logits


def embed(scope: Scope, config: ModelConfig, batch: int, length: int, past: int) -> Value:
    """embedding.output[b,t] = embedding.weight[id(b,t)], [B,T,C]; learned positions are added to it.

    Source: "Token Embedding"; for learned positions the second article, steps 2 and 3.
    """
    ids = scope.builder.leaf("ids", "input_ids", ("batch", "position"), (batch, length))
    table = scope.parameter(
        "embedding.weight", ("vocabulary", "feature"), (config.vocab_size, config.hidden_size)
    )
    tokens = scope.record("embedding.output", scope.builder.apply("lookup", table, ids))
    if config.positions != "learned":
        return tokens
    assert config.max_positions is not None
    places = scope.parameter(
        "position_embedding.weight", ("position", "feature"), (config.max_positions, config.hidden_size)
    )
    positions = scope.record("position_embedding.output", scope.builder.apply("rows", places, first=past, count=length))
    return scope.record("embedding.sum", tokens + positions)


def transformer(scope: Scope, recipe: Recipe, stream: Value) -> Value:
    """x = layer(x) for each of N layers, [B,T,C] → [B,T,C]. Source: "Multi-layer structure"."""
    for number in range(recipe.config.layers):
        stream = layer(scope.at(f"layers.{number}"), recipe, stream)
    return stream


def layer(scope: Scope, recipe: Recipe, x: Value) -> Value:
    """r = x + attention(norm1(x)); y = r + mlp(norm2(r)), [B,T,C]. Source: `layer_forward`.

    With norms after the additions: r = norm1(x + attention(x)); y = norm2(r + mlp(r)).
    """
    if recipe.config.norm_placement == "post":
        added = scope.record("residual1", recipe.join(x, attention(scope.at("attention"), recipe, x)))
        r = recipe.norm(scope.at("norm1"), added)
        sum2 = scope.record("residual2", recipe.join(r, mlp(scope.at("mlp"), recipe, r)))
        return scope.record("output", recipe.norm(scope.at("norm2"), sum2).copy())
    attended = attention(scope.at("attention"), recipe, recipe.norm(scope.at("norm1"), x))
    r = scope.record("residual1", recipe.join(x, attended))
    processed = mlp(scope.at("mlp"), recipe, recipe.norm(scope.at("norm2"), r))
    return scope.record("output", recipe.join(r, processed))


def attention(scope: Scope, recipe: Recipe, x: Value) -> Value:
    """output = merge(softmax(q·k / √D + mask) · v) · Wo, [B,T,C]. Source: "Self-Attention" 1 to 4."""
    config = recipe.config
    C, H = config.hidden_size, config.heads
    q = scope.record("q", linear(scope, config, x, "Wq", "bq", "feature", C))
    q_heads = scope.record("q_heads", split_heads(q, H, "query"))
    k = scope.record("k", linear(scope, config, x, "Wk", "bk", "feature", C))
    k_heads = scope.record("k_heads", split_heads(k, H, "key"))
    v = scope.record("v", linear(scope, config, x, "Wv", "bv", "feature", C))
    v_heads = scope.record("v_heads", split_heads(v, H, "key"))

    query = recipe.prepare(scope, "q", q_heads)
    key = recipe.remember(scope, "k", recipe.prepare(scope, "k", k_heads))
    value = recipe.remember(scope, "v", v_heads)

    dot = scope.record("dot", contract(
        "batch head query head_feature, batch head key head_feature -> batch head query key", query, key
    ))
    scores = scope.record("scores", dot / recipe.sqrt_head_size) if config.scale_scores else dot
    masked_scores = scope.record("masked_scores", scores + recipe.causal_mask) if config.causal else scores
    weights = softmax(scope, "weights", masked_scores, "key")

    head_output = scope.record("head_output", contract(
        "batch head query key, batch head key head_feature -> batch head query head_feature",
        weights, value,
    ))
    merged = scope.record("merged", merge_heads(head_output))
    output = scope.record("output", linear(scope, config, merged, "Wo", "bo", "feature", C))
    return recipe.drop(scope, output)


def mlp(scope: Scope, recipe: Recipe, x: Value) -> Value:
    """output = activation(x · W_up) · W_down at every position alone, [B,T,C]. Source: "MLP"."""
    config = recipe.config
    up = scope.record("up", linear(scope, config, x, "W_up", "b_up", "hidden", config.mlp_size))
    activation = scope.record("activation", recipe.activate(up))
    output = scope.record(
        "output", linear(scope, config, activation, "W_down", "b_down", "feature", config.hidden_size)
    )
    return recipe.drop(scope, output)


def linear(scope: Scope, config: ModelConfig, x: Value, weight: str, bias: str, axis: str, width: int) -> Value:
    """x · W, or x · W + b where the configuration has biases, […,in] → […,width]."""
    matrix = scope.parameter(weight, (x.axes[-1], axis), (x.shape[-1], width))
    if not config.bias:
        return x @ matrix
    return x.builder.apply("affine", x, matrix, scope.parameter(bias, (axis,), (width,)))


def lm_head(scope: Scope, recipe: Recipe, x: Value) -> Value:
    """logits[b,t,v] = x[b,t] · lm_head.weight[v], [B,T,V]; a tied head reads the embedding's rows.

    With a soft cap, logits = cap · tanh(logits / cap). Source: "LM Head".
    """
    config = recipe.config
    if config.tied_head:
        weight = scope.alias("lm_head.weight", "embedding.weight")
    else:
        shape = (config.vocab_size, config.hidden_size)
        weight = scope.parameter("lm_head.weight", ("vocabulary", "feature"), shape)
    return head(scope, x, weight, config.logit_soft_cap)
