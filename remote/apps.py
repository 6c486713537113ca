from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RemoteConfig(AppConfig):
    name = "remote"
    verbose_name = _("Remote")
