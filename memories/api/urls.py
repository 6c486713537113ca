from django.urls import path

from memories.api.views import ExpiryViewSet, FactsViewSet, MemoryViewSet, MessageViewSet, SessionViewSet

# Ids may contain slashes: the remote builds a message's id from that of its session.
urlpatterns = [
    path(
        "memories",
        MemoryViewSet.as_view({"get": "list_memories", "post": "store", "delete": "destroy_of_sender"}),
        name="memory-list",
    ),
    path("users/me/expiry", ExpiryViewSet.as_view({"get": "retrieve", "put": "replace"}), name="user-expiry"),
    path("memories/bulk", FactsViewSet.as_view({"post": "store_many"}), name="memory-bulk"),
    path("memories/add", MessageViewSet.as_view({"post": "add"}), name="memory-add"),
    path("memories/flush", MessageViewSet.as_view({"post": "flush"}), name="memory-flush"),
    path("memories/search", MemoryViewSet.as_view({"post": "search"}), name="memory-search"),
    path("memories/trash", MemoryViewSet.as_view({"get": "list_trash"}), name="memory-trash"),
    path("memories/<path:memory_id>/restore", MemoryViewSet.as_view({"post": "restore"}), name="memory-restore"),
    path(
        "memories/<path:memory_id>/override",
        MemoryViewSet.as_view({"delete": "undo_override"}),
        name="memory-override",
    ),
    path(
        "memories/<path:memory_id>",
        MemoryViewSet.as_view({"get": "retrieve", "patch": "override", "delete": "destroy"}),
        name="memory-detail",
    ),
    path("sessions", SessionViewSet.as_view({"get": "list_sessions"}), name="session-list"),
    path(
        "sessions/<path:session_id>/restore",
        SessionViewSet.as_view(
            {"post": "restore", "get": "retrieve_with_restore_suffix", "delete": "destroy_with_restore_suffix"}
        ),
        name="session-restore",
    ),
    path(
        "sessions/<path:session_id>",
        SessionViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="session-detail",
    ),
]
