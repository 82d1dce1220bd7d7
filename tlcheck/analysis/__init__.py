"""From snapshots to verdicts: separation, footprints (NumPy) and proofs. Sees snapshots only, never TileLang."""
