"""Read time zones as people and programs write them: an IANA name, a Windows name, an offset or a city."""

import re
import unicodedata
import zoneinfo
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from typing import Final

from django.conf import settings

MAX_CHARS: Final = 64
_OFFSET = re.compile(r"(?:utc|gmt|z)?\s?(?P<sign>[+\-\u2212])\s?(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d))?")
_MAX_HOURS = 14

# The zones of Windows by the table of Unicode CLDR (windowsZones, territory 001).
_WINDOWS: Final = """
dateline=Etc/GMT+12|utc-11=Etc/GMT+11|aleutian=America/Adak|hawaiian=Pacific/Honolulu|marquesas=Pacific/Marquesas|
alaskan=America/Anchorage|utc-09=Etc/GMT+9|pacific=America/Los_Angeles|pacific standard time (mexico)=America/Tijuana|
utc-08=Etc/GMT+8|us mountain=America/Phoenix|mountain standard time (mexico)=America/Mazatlan|mountain=America/Denver|
yukon=America/Whitehorse|central america=America/Guatemala|central=America/Chicago|easter island=Pacific/Easter|
central standard time (mexico)=America/Mexico_City|canada central=America/Regina|sa pacific=America/Bogota|
eastern standard time (mexico)=America/Cancun|eastern=America/New_York|haiti=America/Port-au-Prince|
cuba=America/Havana|us eastern=America/Indiana/Indianapolis|turks and caicos=America/Grand_Turk|
paraguay=America/Asuncion|atlantic=America/Halifax|venezuela=America/Caracas|central brazilian=America/Cuiaba|
sa western=America/La_Paz|pacific sa=America/Santiago|newfoundland=America/St_Johns|tocantins=America/Araguaina|
e. south america=America/Sao_Paulo|sa eastern=America/Cayenne|argentina=America/Buenos_Aires|
greenland=America/Godthab|montevideo=America/Montevideo|magallanes=America/Punta_Arenas|saint pierre=America/Miquelon|
bahia=America/Bahia|utc-02=Etc/GMT+2|azores=Atlantic/Azores|cape verde=Atlantic/Cape_Verde|gmt=Europe/London|
greenwich=Atlantic/Reykjavik|sao tome=Africa/Sao_Tome|morocco=Africa/Casablanca|w. europe=Europe/Berlin|
central europe=Europe/Budapest|romance=Europe/Paris|central european=Europe/Warsaw|w. central africa=Africa/Lagos|
jordan=Asia/Amman|gtb=Europe/Bucharest|middle east=Asia/Beirut|egypt=Africa/Cairo|e. europe=Europe/Chisinau|
syria=Asia/Damascus|west bank=Asia/Hebron|south africa=Africa/Johannesburg|fle=Europe/Kiev|israel=Asia/Jerusalem|
south sudan=Africa/Juba|kaliningrad=Europe/Kaliningrad|sudan=Africa/Khartoum|libya=Africa/Tripoli|
namibia=Africa/Windhoek|arabic=Asia/Baghdad|turkey=Europe/Istanbul|arab=Asia/Riyadh|belarus=Europe/Minsk|
russian=Europe/Moscow|e. africa=Africa/Nairobi|iran=Asia/Tehran|arabian=Asia/Dubai|astrakhan=Europe/Astrakhan|
azerbaijan=Asia/Baku|russia time zone 3=Europe/Samara|mauritius=Indian/Mauritius|saratov=Europe/Saratov|
georgian=Asia/Tbilisi|volgograd=Europe/Volgograd|caucasus=Asia/Yerevan|afghanistan=Asia/Kabul|
west asia=Asia/Tashkent|ekaterinburg=Asia/Yekaterinburg|pakistan=Asia/Karachi|qyzylorda=Asia/Qyzylorda|
india=Asia/Calcutta|sri lanka=Asia/Colombo|nepal=Asia/Katmandu|central asia=Asia/Bishkek|bangladesh=Asia/Dhaka|
omsk=Asia/Omsk|myanmar=Asia/Rangoon|se asia=Asia/Bangkok|altai=Asia/Barnaul|w. mongolia=Asia/Hovd|
north asia=Asia/Krasnoyarsk|n. central asia=Asia/Novosibirsk|tomsk=Asia/Tomsk|china=Asia/Shanghai|
north asia east=Asia/Irkutsk|singapore=Asia/Singapore|w. australia=Australia/Perth|taipei=Asia/Taipei|
ulaanbaatar=Asia/Ulaanbaatar|aus central w.=Australia/Eucla|transbaikal=Asia/Chita|tokyo=Asia/Tokyo|
north korea=Asia/Pyongyang|korea=Asia/Seoul|yakutsk=Asia/Yakutsk|cen. australia=Australia/Adelaide|
aus central=Australia/Darwin|e. australia=Australia/Brisbane|aus eastern=Australia/Sydney|
west pacific=Pacific/Port_Moresby|tasmania=Australia/Hobart|vladivostok=Asia/Vladivostok|lord howe=Australia/Lord_Howe|
bougainville=Pacific/Bougainville|russia time zone 10=Asia/Srednekolymsk|magadan=Asia/Magadan|norfolk=Pacific/Norfolk|
sakhalin=Asia/Sakhalin|central pacific=Pacific/Guadalcanal|russia time zone 11=Asia/Kamchatka|
new zealand=Pacific/Auckland|utc+12=Etc/GMT-12|fiji=Pacific/Fiji|chatham islands=Pacific/Chatham|utc+13=Etc/GMT-13|
tonga=Pacific/Tongatapu|samoa=Pacific/Apia|line islands=Pacific/Kiritimati
"""
# Cities and abbreviations that no IANA name contains; an abbreviation of several zones is missing.
_CITIES: Final = """
beijing peking 北京 上海 shenzhen 深圳 guangzhou 广州 hangzhou 杭州 nanjing chengdu wuhan 中国 china=Asia/Shanghai|
香港 hongkong=Asia/Hong_Kong|台北=Asia/Taipei|东京 osaka kyoto japan=Asia/Tokyo|首尔 busan=Asia/Seoul|
新加坡=Asia/Singapore|munich münchen muenchen hamburg frankfurt köln koeln cologne stuttgart düsseldorf leipzig dresden
nuremberg hannover bonn germany deutschland 柏林=Europe/Berlin|wien=Europe/Vienna|zürich geneva genf bern
basel=Europe/Zurich|lyon marseille france 巴黎=Europe/Paris|milan mailand turin naples rom=Europe/Rome|barcelona
seville=Europe/Madrid|manchester edinburgh birmingham england 伦敦=Europe/London|kyiv=Europe/Kiev|st petersburg
saint petersburg=Europe/Moscow|san francisco seattle san diego las vegas portland san jose 旧金山 洛杉矶 pst pdt
pt=America/Los_Angeles|boston miami atlanta washington washington dc philadelphia nyc 纽约 est edt et=America/New_York|
dallas houston austin cst6cdt=America/Chicago|salt lake city mst mdt=America/Denver|montreal ottawa=America/Toronto|
rio de janeiro rio brasilia=America/Sao_Paulo|mumbai delhi new delhi bangalore bengaluru chennai hyderabad
ist=Asia/Kolkata|hanoi saigon=Asia/Ho_Chi_Minh|canberra=Australia/Sydney|wellington=Pacific/Auckland|cape town
pretoria=Africa/Johannesburg|abu dhabi=Asia/Dubai|ankara=Europe/Istanbul|cet cest=Europe/Berlin|bst=Europe/London|
jst=Asia/Tokyo|kst=Asia/Seoul|utc gmt z zulu=UTC
"""
_OF_SEVERAL_WORDS: Final = re.compile(
    "san francisco|san diego|las vegas|san jose|washington dc|salt lake city|rio de janeiro|new delhi|cape town|"
    "abu dhabi|st petersburg|saint petersburg"
)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo | None:
    """Return the zone of an IANA or Windows name, a UTC offset such as `+08:00`, or a city; None for anything else."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_CHARS:
        return None
    key = _folded(name)
    if offset := _OFFSET.fullmatch(key):
        return _fixed(offset)
    known = _names().get(key.replace(" ", "_"))
    if known is None and "," in name:  # "Paris, France"
        known = _names().get(key.split(",")[0].strip().replace(" ", "_"))
    return zoneinfo.ZoneInfo(known) if known else None


def default_zone() -> tzinfo:
    """Return the zone of the installation, `MEMORY_GATEWAY_TIME_ZONE`."""
    return zoneinfo.ZoneInfo(settings.MEMORY_GATEWAY_TIME_ZONE)


def offset_minutes(zone: tzinfo, milliseconds: int) -> int:
    """Return the offset from UTC, in minutes, of a zone at a time in Unix milliseconds."""
    try:
        offset = datetime.fromtimestamp(milliseconds / 1000, tz=zone).utcoffset()
    except (OverflowError, ValueError, OSError):  # the zone shifts the time out of the years 1 to 9999
        return 0
    return round((offset or timedelta()).total_seconds() / 60)


def _folded(name: str) -> str:
    """Return a name without case and accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(char))


def _fixed(offset: re.Match[str]) -> tzinfo | None:
    hours, minutes = int(offset["hours"]), int(offset["minutes"] or 0)
    if hours + (minutes > 0) > _MAX_HOURS:
        return None
    size = timedelta(hours=hours, minutes=minutes)
    return timezone(size if offset["sign"] == "+" else -size)


@cache
def _names() -> dict[str, str]:
    """Return the IANA name of each known name, folded, with `_` for spaces."""
    available = zoneinfo.available_timezones()
    found: dict[str, str] = {}
    for zone in sorted(available):
        found.setdefault(zone.rpartition("/")[2].casefold(), zone)
    for names, zone in _pairs(_CITIES):
        cities = _OF_SEVERAL_WORDS.sub(lambda match: match[0].replace(" ", "_"), names)
        found |= dict.fromkeys(map(_folded, cities.split()), zone)
    for windows, zone in _pairs(_WINDOWS):
        key = windows.replace(" ", "_")
        is_full = "(" in key or key.startswith(("utc", "russia_time"))
        found |= {key: zone} if is_full else {f"{key}_standard_time": zone, f"{key}_daylight_time": zone}
    found |= {zone.casefold(): zone for zone in available}
    return {name: zone for name, zone in found.items() if zone in available}


def _pairs(table: str) -> list[tuple[str, str]]:
    lines = (entry.partition("=") for entry in table.replace("\n", " ").split("|"))
    return [(names.strip(), zone.strip()) for names, _, zone in lines]
