"""All kinds of jobs: the modules imported here add theirs to `jobs.KINDS`, so that whoever runs jobs knows them all."""

from operations import bulk, operator_jobs
from operations.jobs import KINDS

MODULES = (bulk, operator_jobs)

__all__ = ["KINDS", "MODULES"]
