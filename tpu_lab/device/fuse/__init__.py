"""The deferred executor (`EagerMode.DEFER_AND_FUSE`): clusters of operator calls as one program.

A *trace* is what was called between two *cuts* (`trace.py`). While a trace is unseen each call runs at once with its strict
program, and only how the calls are wired is noted. A *cluster* is such a wiring; one that comes back is compiled in the
background (`clusters.py`, `program.py`). From then on, calls that begin as it does are deferred, and run at the cut as one
program, or one by one where they turn out to be something else (`finish.py`).
"""
