import os

# Before any library that starts threads for arithmetic: in a server of many small requests they only compete.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
