"""No atomics: these kernels have no TIR."""
