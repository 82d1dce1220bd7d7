"""Turn evidence into verdicts: rules, results, what a case expects, and what was accepted."""
