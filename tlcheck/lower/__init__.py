"""From selected kernel files and scripts to snapshots: selection, sessions, workers, and answers that are kept."""
