"""Runs compiled kernels on a GPU and compares them with torch; `worker.gpu` is what touches the device."""
