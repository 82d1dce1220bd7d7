"""Proves for all blocks and inputs that lowered atomics add what is written: footprints (NumPy) and proofs (TVM)."""
