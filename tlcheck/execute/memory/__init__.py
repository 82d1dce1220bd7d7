"""Hold the values of a kernel: registers, shared buffers, tensors, and how an access finds its element."""
