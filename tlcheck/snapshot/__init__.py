"""The version-neutral record of one kernel at its checkpoints. Standard library only: the worker imports it too."""
