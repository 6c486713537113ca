from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProfilesConfig(AppConfig):
    name = "profiles"
    verbose_name = _("Profiles")

    def ready(self) -> None:
        from accounts import profile_entries, zones  # noqa: PLC0415  models load after apps
        from profiles import entries, services  # noqa: PLC0415

        zones.read_with(services.time_zone_of)
        profile_entries.read_with(entries.fitting)
