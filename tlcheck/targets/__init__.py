"""The machines that kernels are lowered for, by family. Standard library only: the worker imports it too."""
