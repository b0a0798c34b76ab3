"""Lesson 38: Who wrote this logit?."""

from ui import lesson

lesson.show("wrote")
