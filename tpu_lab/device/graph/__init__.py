"""FX graphs of ATen operators as jax functions: `interpret` runs one with the lowerings, `decompose` makes one out of an operator that has none."""
