"""Mask card numbers, secrets, e-mail addresses and phone numbers in texts before they are stored."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from django.conf import settings

KINDS: Final[tuple[str, ...]] = ("cards", "secrets", "emails", "phones")
"""The values of `MEMORY_GATEWAY_REDACT`."""
_NAME_OF: Final = {"cards": "card", "secrets": "secret", "emails": "email", "phones": "phone"}

# Issuers by first digits, with the lengths of their numbers.
_ISSUER = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12}"  # Discover
    r"|3(?:0[0-5]|[68]\d)\d{11}"  # Diners Club
    r"|35(?:2[89]|[3-8]\d)\d{12}"  # JCB
    r"|62\d{14,17}"  # UnionPay
)
_CARD = re.compile(r"(?<![\w.+/-])(?<!\d[ -])\d(?:[ -]?\d){12,18}(?![\w/]|[ -]\d|\.\d)")
_GROUPS = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d+")
_NUMBER_OF_ORDER = re.compile(
    r"(?:order|invoice|tracking|parcel|shipment|ticket|case|ref(?:erence)?|serial|batch|commit|hash|isbn|imei|iban|account|id|"
    r"bestell\w*|rechnung\w*|sendung\w*|auftrag\w*|订单\w*|單號|单号|运单\w*|编号|发票\w*)\W{0,3}(?:no|nr|number|num|id|nummer|号|號)?"
    r"[\s.:#=是为]*$",
    re.IGNORECASE,
)
_CONTEXT: Final = 32
_SECRET = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----.*?(?:-----END (?:[A-Z]+ )*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9_-])(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9_])(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AIza|uk_)[A-Za-z0-9_-]{16,}"
    r"|(?<=\b[Bb]earer )[A-Za-z0-9._~+/-]{16,}=*"
    r"|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"
    r"|(?<=://)[^/\s:@]{1,80}:[^/\s@]{1,80}(?=@)",
    re.DOTALL,
)
_NAMED_SECRET = re.compile(
    r"((?<![A-Za-z])(?:password|passwd|passphrase|pwd|passwort|kennwort|client[_-]?secret|secret[_-]?key|secret|api[_-]?key|"
    r"access[_-]?token|auth[_-]?token)[\"']?\s{0,3}[=:]\s{0,3}[\"']?|(?:密码|口令|密钥)\s{0,3}[=:：]\s{0,3})([^\s\"',;，。]{4,200})",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])")
_PHONE = re.compile(
    r"(?<![\w.+/:-])(?:\+\d{1,3}[ .-]?(?:\(0?\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}"  # +49 30 1234567
    r"|\(\d{2,5}\)[ .-]?\d{3,4}[ .-]?\d{3,5}"  # (030) 123 4567
    r"|\d{3}[ .-]\d{3}[ .-]\d{4}"  # 555-010-0199
    r"|0\d{2,4}[ /-]\d{3,8}(?:[ -]\d{2,5})?"  # 030/1234567
    r"|1[3-9]\d{9})(?![\w/]|[.-]\d)"  # China
)


def redact(text: str, kinds: Collection[str]) -> tuple[str, Counter[str]]:
    """Return the text with `[redacted: card]` and the like in the place of values, and their number of each kind.

    The values are neither returned nor logged.
    """
    found: Counter[str] = Counter()
    for kind in KINDS:
        if kind in kinds:
            text = _RULES[kind](text, partial(_masked, _NAME_OF[kind], found))
    return text, found


_Mask = Callable[[], str]


def _masked(name: str, found: Counter[str]) -> str:
    found[name] += 1
    return f"[redacted: {name}]"


def _cards(text: str, mask: _Mask) -> str:
    return _CARD.sub(lambda match: mask() if _is_card(text, match) else match[0], text)


def _is_card(text: str, match: re.Match[str]) -> bool:
    """Return True for a number of an issuer, with its check digit, that the text does not call an order number."""
    digits = re.sub(r"[ -]", "", match[0])
    if not (_ISSUER.fullmatch(digits) and _GROUPS.fullmatch(match[0]) and _has_check_digit(digits)):
        return False
    return not _NUMBER_OF_ORDER.search(text[max(match.start() - _CONTEXT, 0) : match.start()])


def _has_check_digit(digits: str) -> bool:
    """Return True if the last digit is that of Luhn (ISO/IEC 7812-1)."""
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _secrets(text: str, mask: _Mask) -> str:
    text = _SECRET.sub(lambda _match: mask(), text)
    return _NAMED_SECRET.sub(lambda match: match[0] if match[2].startswith("[redacted") else match[1] + mask(), text)


def _emails(text: str, mask: _Mask) -> str:
    return _EMAIL.sub(lambda _match: mask(), text)


def _phones(text: str, mask: _Mask) -> str:
    return _PHONE.sub(lambda _match: mask(), text)


_RULES: Final[dict[str, Callable[[str, _Mask], str]]] = {
    "cards": _cards, "secrets": _secrets, "emails": _emails, "phones": _phones,
}  # fmt: skip


def masked(text: str, redacted: Counter[str] | None = None) -> str:
    """Return the text without the values that the settings say to mask; add their numbers to `redacted`, by kind."""
    if not settings.MEMORY_GATEWAY_REDACT:
        return text
    text, found = redact(text, settings.MEMORY_GATEWAY_REDACT)
    if redacted is not None:
        redacted.update(found)
    return text


def masked_data(
    value: Any, redacted: Counter[str] | None = None, clean: Callable[[str, Counter[str] | None], str] = masked
) -> Any:
    """Return plain data with its texts cleaned, and without values to mask in its keys."""
    if isinstance(value, str):
        return clean(value, redacted)
    if isinstance(value, Mapping):
        return {masked(str(key), redacted): masked_data(item, redacted, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_data(item, redacted, clean) for item in value]
    return value
