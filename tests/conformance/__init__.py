"""The conformance suite: everything PyTorch's own databases of samples describe, on the device against the CPU (`make conformance`)."""
