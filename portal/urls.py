from django.urls import path

from portal import access
from portal.api.views import PortalLinkView
from portal.views import (
    connections,
    conversations,
    everything,
    files,
    looks,
    memories,
    never,
    profile,
    remembering,
    trash,
)

app_name = "portal"
urlpatterns = [
    path("portal-links", PortalLinkView.as_view()),
    path("portal/open/<str:plaintext>", access.open_link, name="open"),
    path("portal/leave", access.leave, name="leave"),
    path("portal/", memories.known, name="known"),
    path("portal/memories/forget", memories.forget, name="forget"),
    path("portal/memories/undo", memories.undo, name="undo"),
    path("portal/memories/<int:row>", memories.memory, name="memory"),
    path("portal/memories/<int:row>/correct", memories.correct, name="correct"),
    path("portal/memories/<int:row>/revert", memories.revert, name="revert"),
    path("portal/memories/<int:row>/delete", memories.delete, name="delete"),
    path("portal/memories/<int:row>/restore", memories.restore, name="restore"),
    path("portal/profile", profile.profiles, name="profile"),
    path("portal/profile/<str:kind>", profile.edit, name="profile-edit"),
    path("portal/files", files.files, name="files"),
    path("portal/files/<str:resource_id>", files.download, name="file"),
    path("portal/files/<str:resource_id>/delete", files.delete, name="file-delete"),
    path("portal/files/<str:resource_id>/restore", files.restore, name="file-restore"),
    path("portal/conversations", conversations.conversations, name="conversations"),
    path("portal/conversations/<int:row>", conversations.conversation, name="conversation"),
    path("portal/conversations/<int:row>/delete", conversations.delete, name="conversation-delete"),
    path("portal/conversations/<int:row>/restore", conversations.restore, name="conversation-restore"),
    path("portal/connections", connections.connections, name="connections"),
    path("portal/connections/<str:kind>/<uuid:pk>/revoke", connections.revoke, name="revoke"),
    path("portal/remembering", remembering.remembering, name="remembering"),
    path("portal/remembering/never", never.forbid, name="forbid"),
    path("portal/remembering/allow", never.allow, name="allow"),
    path("portal/remembering/<str:source>/pause", remembering.pause, name="pause"),
    path("portal/remembering/<str:source>/resume", remembering.resume, name="resume"),
    path("portal/looks", looks.looks, name="looks"),
    path("portal/trash", trash.trash, name="trash"),
    path("portal/everything", everything.everything, name="everything"),
    path("portal/everything/download", everything.download, name="download"),
    path("portal/everything/erase", everything.erase, name="erase"),
    path("portal/receipt", everything.receipt, name="receipt"),
]
