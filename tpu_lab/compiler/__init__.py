"""`torch.compile(backend="tpu")`: Dynamo's graphs, split by AOTAutograd into forward and backward, each one XLA program."""
