"""Collect all translatable strings of the current folder into its folder `locale/`.

Run with `python -m tests.console.collect_messages` in a folder with the code, or links to it, and an empty `locale/`.
"""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

call_command("makemessages", locale=["zh_Hans"], no_wrap=True, add_location="never", symlinks=True, verbosity=0)
