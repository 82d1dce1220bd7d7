"""Make snapshots of selected kernel files and scripts: selection, sessions, workers, and answers that are kept."""
