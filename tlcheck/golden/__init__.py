"""Golden IR: approved TIR and facts, kept with git, compared with what a kernel lowers to now."""
