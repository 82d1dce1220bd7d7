"""Running the compiled kernels on a GPU and comparing them with torch. `device` runs in the toolchain's interpreter."""
