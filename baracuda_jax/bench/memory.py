"""Memory on the host while times are taken.

Freed memory goes back to the system in some calls and not in others. To get it again, page by page as it is first written,
takes longer than most kernels do: the time of a call would be that of luck."""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
NEVER = 2**30


def keep_freed():
    """Has the process keep what it frees, for all that allocate in it, as far as the C library can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        for parameter in (TRIM_THRESHOLD, MMAP_THRESHOLD):
            mallopt(parameter, NEVER)
