"""Lesson 30: loss; how surprised the model is at every position, and how the logits would lower it."""

from ui import lesson, loss_charts, target_choice
from ui.layout import grid, op, section

lesson.show(
    "loss",
    section(
        "section_loss_surprise", grid("targets"), grid("loss.target_probability"), op("−ln"),
        grid("loss.per_position"), op("sign_mean"), grid("loss"), note="note_loss_surprise",
    ),
    section(
        "section_loss_uniform", grid("loss.vocabulary_size", title="title_vocabulary_size"), op("ln"),
        grid("loss.uniform"), grid("loss"), op("exp"), grid("loss.perplexity"), note="note_loss_uniform",
    ),
    section(
        "section_loss_together", grid("loss.per_position"), op("Σ"), grid("loss.together"), op("exp(−Σ)"),
        grid("loss.product"), note="note_loss_together",
    ),
    section(
        "section_loss_steps", grid("logits"), op("−"), grid("probabilities.max"), op("="),
        grid("probabilities.shifted"), op("exp, Σ"), grid("probabilities.sum"), op("ln"), grid("loss.log_sum"), op("−"),
        grid("loss.target_shifted"), op("="), grid("loss.per_position"), note="note_loss_steps",
    ),
    section(
        "section_loss_logits", grid("probabilities"), op("−"), grid("loss.wanted"), op("="), grid("loss.error"),
        op("÷ {T} ="), grid("gradient.logits"), note="note_loss_logits",
    ),
    panel=target_choice.panel, chart=loss_charts.surprise,
)
