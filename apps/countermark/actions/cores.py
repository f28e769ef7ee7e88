"""How many processor cores this process may use, which a container may bound below those of the machine."""

import os


def cores() -> int:
    """One at least; where the system does not tell what is allowed, all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
