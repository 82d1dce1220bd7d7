"""Whether an upgrade of TileLang is safe for a project's kernels: each lowered with two toolchains, and compared."""
