"""Keep the memory of a server flat under load."""

import ctypes
import os

# oneDNN keeps compiled kernels for the last 1,024 shapes of products, some 500 KB each, and a batch of a new size needs
# four: memory would grow under load. It reads this when the first product is computed.
CACHED_KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD of glibc's mallopt
KEPT_FREE = 16 << 20  # bytes at the end of the heap that are not returned to the system; by default up to 64 MB


def limit_memory() -> None:
    """Cache few kernels, and return freed memory early. Call it before the first product is computed."""
    os.environ.setdefault(*CACHED_KERNELS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None  # glibc has it, musl does not
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, KEPT_FREE)
