"""All kinds of jobs: the modules imported here add theirs to `jobs.KINDS`, so that whoever runs jobs knows them all."""

from lifecycle import bulk, deeds
from lifecycle.jobs import KINDS

MODULES = (bulk, deeds)

__all__ = ["KINDS", "MODULES"]
