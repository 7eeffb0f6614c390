"""Scripts that measure strays, against peers where there are any; run as `python -m benchmarks.NAME`."""
