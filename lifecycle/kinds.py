"""All kinds of jobs: the modules imported here add theirs to `jobs.KINDS`, so that whoever runs jobs knows them all."""

from lifecycle import bulk
from lifecycle.jobs import KINDS

MODULES = (bulk,)

__all__ = ["KINDS", "MODULES"]
