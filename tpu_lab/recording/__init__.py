"""Recorders that turn what ran into a `Run`, and the store of the last runs."""
