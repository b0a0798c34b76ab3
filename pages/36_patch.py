"""Lesson 36: Patch."""

from ui import lesson

lesson.show("patch")
