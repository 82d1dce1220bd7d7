"""Describe what ends a script that is captured, and says nothing of its kernels."""

from __future__ import annotations


class UnseenError(Exception):
    """The script asked for what is not there: values that only a launch makes, or a package that is not installed."""
