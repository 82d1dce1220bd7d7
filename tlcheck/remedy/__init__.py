"""Describe what to do about a kernel that a release has wrong: changes that are tried until all claims agree."""
