"""Random sequences of operators on the device against the CPU (`make fuzz`)."""
