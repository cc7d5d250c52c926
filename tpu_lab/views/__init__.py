"""A run as text, as an HTML fragment and as a MIME bundle. Reads records only: no torch, no jax."""
