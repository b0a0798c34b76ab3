"""Lesson 34: Heads at a glance."""

from ui import lesson

lesson.show("heads")
