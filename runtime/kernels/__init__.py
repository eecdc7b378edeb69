"""The computation after the network on a CPU, compiled by numba."""
