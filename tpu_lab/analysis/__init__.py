"""Conclusions from records: pure functions, record in, record data out. No torch, no jax."""
