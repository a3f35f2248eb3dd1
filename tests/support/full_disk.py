"""A full disk that a test can make without a mount."""

from __future__ import annotations

import resource
from collections.abc import Callable


def files_limited_to(file_bytes: int) -> Callable[[], None]:
    """Return a function that limits the size of the files of a process that is about to start."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))
