"""Lesson 33: Training run."""

from ui import lesson

lesson.show("training")
