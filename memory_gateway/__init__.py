import os

# Before any library that brings its own threads for arithmetic: in a server of many small requests they only compete.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
