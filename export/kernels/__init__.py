"""Everything after the network on a CPU, compiled by numba."""
