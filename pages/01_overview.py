"""Lesson 1: the whole model, from token ids to logits."""

from ui import lesson
from ui.layout import Flow, section

lesson.show("overview", section(None, Flow("model"), note="note_flow"))
