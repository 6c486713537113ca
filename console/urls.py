"""The panel's pages, below the admin site. Those that act answer POST only."""

from __future__ import annotations

from django.urls import path

from console.views import add, bulk, dashboard, lab, memories, memory, shell

app_name = "console"
urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("find/", shell.find, name="find"),
    path("language/", shell.language, name="language"),
    path("list/", memories.memories, name="memories"),
    path("m/<int:row>/", memory.memory, name="memory"),
    path("m/<int:row>/text/", memory.text, name="memory-text"),
    path("m/<int:row>/raw/", memory.raw, name="memory-raw"),
    path("m/<int:row>/edit/", memory.change, name="memory-edit"),
    path("m/<int:row>/revert/", memory.revert, name="memory-revert"),
    path("m/<int:row>/delete/", memory.remove, name="memory-delete"),
    path("m/<int:row>/restore/", memory.bring_back, name="memory-restore"),
    path("search/", lab.lab, name="lab"),
    path("add/", add.add, name="add"),
    path("bulk/", bulk.bulk, name="bulk"),
    path("jobs/<uuid:job>/undo/", bulk.undo, name="job-undo"),
]
