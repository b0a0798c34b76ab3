"""Lesson 29: Data and targets."""

from ui import lesson

lesson.show("data")
