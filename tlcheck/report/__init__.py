"""Report what `tlcheck check` found, for people and for programs: one module for each format."""
