"""A stand-in for TVM's foreign functions: importing the real package takes longer than all else that a worker does."""
