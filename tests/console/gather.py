"""Collects every string that the code marks for translation into `locale/` of the current folder, which must hold the
code (links will do) and that empty folder: `python -m tests.console.gather`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

call_command("makemessages", locale=["zh_Hans"], no_wrap=True, add_location="never", symlinks=True, verbosity=0)
