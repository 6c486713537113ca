"""Tell questions about what is known of the user, in English, German and Chinese."""

import re
from typing import Final

_ABOUT_ME: Final = re.compile(
    r"""\W*(?:
    (?:(?:hi|hey|hello|so|ok|okay|please|(?:can|could|would)\ you)\W+)*
    (?:
        (?:(?:please\ )?(?:tell|show|remind)\ me\ |summari[sz]e\ |list\ )?
        (?:what(?:'s|\ else|\ all|\ exactly)?|how\ much|everything|anything|all(?:\ the)?)
        (?:\ (?:facts|things|information|details|memories|data))?
        (?:\ (?:do|can|did|have|is|that|else|else\ do))*
        (?:\ you(?:'ve|\ have|\ already|\ actually|\ still|\ currently)*\ (?:know|knew|remember(?:ed)?|recall|
            learn(?:ed|t)?|stored?|saved?|have|got|noted|found\ out)|\ (?:stored|saved|known|remembered))
        \ (?:about|of|on)\ (?:me|myself)
        |tell\ me\ (?:something\ |more\ |everything\ |all\ )?about\ (?:me|myself)
        |do\ you\ (?:still\ )?(?:know|remember)\ (?:me|who\ i\ am|(?:anything|something)\ about\ me)
        |who\ am\ i(?:\ to\ you)?|describe\ me|summari[sz]e\ me
    )(?:\ (?:so\ far|now|already|by\ now|exactly|then|please))*
    |(?:bitte\ )?(?:erzähl(?:e|en\ sie)?\ mir,?\ |sag(?:e|en\ sie)?\ mir,?\ |fasse?\ zusammen,?\ )?
    (?:
        (?:was|alles,?\ was|wie\ viel)\ (?:wei(?:ß|ss)t|wissen|kennst)\ (?:du|sie)
        (?:\ (?:alles|denn|schon|bisher|bereits|eigentlich|so))*\ (?:über\ mich|von\ mir|von\ mich)
        (?:\ (?:alles|bisher|schon|so))*
        |(?:was|alles,?\ was)\ (?:du|sie)(?:\ alles)?\ (?:über\ mich|von\ mir)(?:\ alles)?\ (?:wei(?:ß|ss)t|wissen)
        |was\ (?:hast\ du|haben\ sie)(?:\ (?:dir|sich|alles|bisher))*\ (?:über\ mich|von\ mir)
        (?:\ (?:alles|bisher))*\ (?:gemerkt|gespeichert|gelernt|erfahren)
        |(?:wei(?:ß|ss)t\ du|wissen\ sie)\ (?:et)?was\ über\ mich|(?:wei(?:ß|ss)t\ du|wissen\ sie),?\ wer\ ich\ bin
        |(?:alles|etwas|mehr)\ über\ mich|(?:kennst\ du|kennen\ sie)\ mich|wer\ bin\ ich|beschreibe?\ mich
    )
    |(?:请|請)?(?:告诉我|告訴我|说说|說說|总结一下|總結一下)?[,，]?(?:
        [你您](?:都|还|還|现在|現在|目前)*(?:知道|记得|記得|了解|记住|記住|掌握)了?(?:关于|關於|有关|有關)?我的?
        (?:(?:一)?些?(?:什么|什麼)|哪些(?:事|事情|信息|資訊)?|多少|一切|所有(?:事|事情|信息)?)?(?:事|事情)?[吗嗎]?
        |(?:关于|關於|有关|有關)我[,，]?(?:的(?:事|事情|信息)[,，]?)?[你您](?:都|还|還)*
        (?:知道|记得|記得|了解|记住|記住)了?些?(?:什么|什麼|哪些|多少)
        |[你您]对我(?:都|有)?(?:知道|了解|记得)?些?(?:什么|多少|哪些)?(?:了解)?
        |[你您]對我(?:都|有)?(?:知道|了解|記得)?些?(?:什麼|多少|哪些)?(?:了解)?
        |我是(?:谁|誰)|[你您](?:还|還)?(?:知道|记得|記得)我是(?:谁|誰)[吗嗎]?|(?:介绍|介紹|描述)一下我
    )
    )\W*""",
    re.IGNORECASE | re.VERBOSE,
)
_MAX_ABOUT_ME: Final = 100
"""The characters of the longest question about oneself."""


def is_about_me(query: str) -> bool:
    """Return True for questions such as "What do you know about me?", which have no words to search for."""
    asked = " ".join(query.replace("\u2019", "'").split())
    return len(asked) <= _MAX_ABOUT_ME and _ABOUT_ME.fullmatch(asked) is not None
