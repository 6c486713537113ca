from django.contrib import admin

from accounts.admin_base import PersonalAdmin
from webhooks.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(PersonalAdmin):
    list_display = ("id", "user", "url", "is_enabled", "created_at")
    list_filter = ("is_enabled", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(PersonalAdmin):
    list_display = ("delivery_id", "event_type", "user", "webhook_id", "status", "status_code", "created_at")
    list_filter = ("status", "event_type", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact", "delivery_id__exact")
