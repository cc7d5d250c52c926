"""Figures of the device, measured: `python -m benchmarks.device`."""
