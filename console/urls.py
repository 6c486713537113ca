"""The panel's pages, below the admin site. Those that act answer POST only."""

from __future__ import annotations

from django.urls import path

from console.views import (
    add,
    audit,
    bulk,
    dashboard,
    health,
    jobs,
    lab,
    memories,
    memory,
    resources,
    shell,
    trash,
    uploading,
    users,
)

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
    path("resources/", resources.resources, name="resources"),
    path("resources/upload/", uploading.upload, name="resource-upload"),
    path("resources/retry/", resources.retry, name="resource-retry"),
    path("resources/<str:resource_id>/", resources.resource, name="resource"),
    path("resources/<str:resource_id>/content/", resources.content, name="resource-content"),
    path("resources/<str:resource_id>/delete/", resources.remove, name="resource-delete"),
    path("bulk/", bulk.bulk, name="bulk"),
    path("undo/", bulk.undo, name="undo"),
    path("jobs/", jobs.all_jobs, name="jobs"),
    path("jobs/<uuid:job>/", jobs.job, name="job"),
    path("jobs/<uuid:job>/undo/", bulk.undo_job, name="job-undo"),
    path("jobs/<uuid:job>/stop/", jobs.stop, name="job-stop"),
    path("jobs/<uuid:job>/download/", jobs.download, name="job-download"),
    path("trash/", trash.trash, name="trash"),
    path("trash/sessions/", trash.sessions, name="trash-sessions"),
    path("users/", users.users, name="users"),
    path("users/<uuid:pk>/", users.user, name="user"),
    path("users/<uuid:pk>/export/", users.export, name="user-export"),
    path("users/<uuid:pk>/erase/", users.erasure, name="user-erase"),
    path("users/<uuid:pk>/session/", users.remove_session, name="user-session"),
    path("audit/", audit.audit, name="audit"),
    path("health/", health.health, name="health"),
]
