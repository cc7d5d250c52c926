"""Is what tpu_lab says about fusion true? `python -m benchmarks.fusion` compiles the programs here for TPU targets and checks it."""
