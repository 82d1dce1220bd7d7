"""Kernels x toolchains: how every kernel fares with every toolchain."""
