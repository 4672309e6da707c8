"""Hypothesis without a deadline: on a busy machine an example is slow now and then, not wrong."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
