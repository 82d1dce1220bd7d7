"""Choose what is run: sizes, inputs, blocks, and how much of them the budget allows."""
