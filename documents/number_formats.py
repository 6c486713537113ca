"""Show numbers of sheets by their number formats, as office programs do: 25%, 1,200.50 EUR."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final

BUILT_IN: Final = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    **dict.fromkeys((37, 38), "#,##0 ;(#,##0)"),
    **dict.fromkeys((39, 40), "#,##0.00;(#,##0.00)"),
}
"""The formats that have a number instead of a text, without those of dates."""
_TOKEN: Final = re.compile(
    r'"([^"]*)"|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|(General|[#0?][#0?,.]*)|(.)', re.DOTALL
)
_UNKNOWN: Final = re.compile(r"[dmyhseDMYHSE@]|General")
_MAX_DECIMALS: Final = 15
_MAX_DIGITS: Final = 30
_EXACT: Final = Context(prec=_MAX_DIGITS + _MAX_DECIMALS + 5)


def displayed(value: str, code: str) -> str | None:
    """Return a number as its format shows it; None if the format shows a date or is not understood."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    sections = _sections(code)
    if not number.is_finite() or number.adjusted() > _MAX_DIGITS:
        return None
    if any("[<" in one or "[>" in one or "[=" in one for one in sections):
        return None
    section, is_negated = sections[0], number < 0
    if number < 0 and len(sections) > 1:
        section, is_negated = sections[1], False
    elif number == 0 and len(sections) > 2:
        section = sections[2]
    return _shown(abs(number), section, "-" if is_negated else "")


def _sections(code: str) -> list[str]:
    return re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', code)


def _shown(number: Decimal, section: str, sign: str) -> str | None:
    parts: list[str] = []
    pattern: str | None = None
    for match in _TOKEN.finditer(section):
        literal, escaped, currency, digits, other = match.groups()
        if digits:
            if pattern is not None or digits == "General":
                return None
            pattern = digits
            parts.append("\0")
        elif other and (_UNKNOWN.match(other) or other == "/"):
            return None
        else:
            parts.append(literal or escaped or currency or other or "")
    text = "".join(parts)
    if pattern is None:
        return " ".join(text.split()) or None if "@" not in section else None
    if "%" in text:
        number *= 100
    return " ".join((sign + text.replace("\0", _digits(number, pattern))).split())


def _digits(number: Decimal, pattern: str) -> str:
    """Return the digits of a number by a pattern such as "#,##0.00"."""
    shown = pattern.rstrip(",")  # each comma at the end divides by a thousand
    scale = len(pattern) - len(shown)
    whole, _point, decimals = shown.partition(".")
    most = min(sum(one in "0#?" for one in decimals), _MAX_DECIMALS)
    least = min(decimals.count("0"), most)
    rounded = (number / 1000**scale).quantize(Decimal(1).scaleb(-most), ROUND_HALF_UP, _EXACT)
    integer, _point, fraction = f"{rounded:f}".partition(".")
    while len(fraction) > least and fraction.endswith("0"):
        fraction = fraction[:-1]
    integer = integer.zfill(whole.count("0"))
    if "," in whole:
        integer = f"{int(integer):,}"
    return integer + ("." + fraction if fraction else "")
