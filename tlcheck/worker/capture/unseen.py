"""Describe what ends a script that is captured, and says nothing of its kernels."""

from __future__ import annotations


class UnseenError(Exception):
    """The script asked for what is not there: values that only a launch makes, or a package that is not installed."""


class NoValuesError(UnseenError):
    """The script asked for values that do not exist, since nothing is launched."""


class NoTimeError(NoValuesError):
    """Another run, or another machine, might have them."""
