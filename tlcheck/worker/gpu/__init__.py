"""Describe what runs in the toolchain's interpreter, on the GPU: only the standard library, torch and tilelang."""
