"""From evidence to verdicts: rules, results, what a case expects, and what was accepted."""
