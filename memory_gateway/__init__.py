import os

# Limits the threads of linear algebra libraries, which would slow down a server with many small requests. Must be set
# before they are imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
