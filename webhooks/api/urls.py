from django.urls import path

from webhooks.api.views import DeliveryViewSet, WebhookViewSet

urlpatterns = [
    path("webhooks", WebhookViewSet.as_view({"get": "list_webhooks", "post": "create"})),
    path(
        "webhooks/<uuid:webhook_id>",
        WebhookViewSet.as_view({"get": "retrieve", "patch": "change", "delete": "destroy"}),
    ),
    path("webhooks/<uuid:webhook_id>/rotate-secret", WebhookViewSet.as_view({"post": "rotate_secret"})),
    path("webhooks/<uuid:webhook_id>/test", WebhookViewSet.as_view({"post": "test"})),
    path("webhooks/<uuid:webhook_id>/deliveries", DeliveryViewSet.as_view({"get": "list_deliveries"})),
]
