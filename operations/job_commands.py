"""The base class of commands that run a job in their process."""

import time
from typing import Final

from core.errors import Conflict
from operations import jobs
from operations.commands import OperationsCommand, Stopped
from operations.models import Job

_WAIT_SECONDS: Final = 0.5


class JobCommand(OperationsCommand):
    """A command that runs a job. A signal stops it after a step; the same command continues it."""

    def run_job(self, job: Job) -> Job:
        """Run a job, or wait for the process that does. Raises: `Conflict` if it fails, `Stopped`."""
        done = jobs.run_now(job, should_end=self.stop.is_set)
        while not done.is_over:
            if self.stop.is_set():
                raise Stopped
            time.sleep(_WAIT_SECONDS)
            done = jobs.run_now(job, should_end=self.stop.is_set)
        if done.status != Job.Status.DONE:
            raise Conflict(str(done.error) or "The job was stopped.")
        return done
