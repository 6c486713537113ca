"""Statements and questions in English: the relations that verbs and nouns say, and the words for a change."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from core.patterns import lazy_pattern
from store.text.nouns_en import name_of, noun_slot
from store.text.slot_words import DIETS, PROFESSIONS, RELATIONS, STATES
from store.text.slots import (
    GROUP,
    LEAVES,
    SPEAKER,
    USES,
    Rule,
    Signal,
    Slot,
    Statement,
    compiled,
    is_single,
    owner_of,
    relation_of_tool,
    relation_of_use,
)

I = re.IGNORECASE  # noqa: E741

_ENDINGS: Final = {"m": " am", "re": " are", "ve": " have", "ll": " will", "d": " would"}
_ENDING = lazy_pattern(r"'(m|re|ve|ll|d)\b", I)
_IS = lazy_pattern(r"'s (?=(?:now|called|moved|been|on|at|not|no longer|currently)\b)")
_PRONOUNS: Final = tuple(
    (f"{word}'s ", f"{word} is ")
    for pronoun in ("it", "that", "what", "who", "where", "when", "how", "there", "he", "she")
    for word in (pronoun, pronoun.capitalize())
)
_NEGATIONS: Final = (("can't", "can not"), ("Can't", "Can not"), ("won't", "will not"), ("n't", " not"))
_DOUBT = lazy_pattern(
    r"\b(?:if|unless|would|could|might|maybe|perhaps|probably|wish(?:es|ed)?|hop(?:e|es|ing)|plan(?:s|ning|ned)? "
    r"(?:to|on)"
    r"|going to|gonna|think(?:ing)? (?:of|about)|consider(?:s|ing|ed)?|almost|nearly|should|imagine|suppos(?:e"
    r"|ing)|pretend"
    r"|dream(?:s|ed|t|ing)?|used to|back when|when (?:i|we|he|she|they|my)|while i|as a (?:kid|child|teenager"
    r"|student)|years? ago"
    r"|back then|until (?:last|\d{4})|till|before (?:i|we|that)|want(?:s|ed)? to|like to|love to|try(?:ing)? to"
    r"|thought|said|says|told"
    r"|asked|claims?|heard|read that|apparently|let us say|what if|whether|in the (?:story|novel|game|movie|film"
    r"|book|play)"
    r"|for example|e\.g\.|once|originally|at first|initially|in (?:my|his|her) (?:twenties|thirties|youth"
    r"|childhood|teens)"
    r"|in (?:19|200|201)\d\b|during|will (?:move|quit|switch|start|join|sell|buy|change|migrate)|will be "
    r"(?:moving|joining)"
    r"|about to|next year|someday|one day|eventually|pretending|joking|kidding|never|nobody|supposed to|can not wait"
    r"|refus(?:e|ed) to|decided not|decided against|rumou?r|as though|like (?:i|we) (?:am|are|was|were)|feels?"
    r" like|as if)\b",
    I,
)
_FICTION = lazy_pattern(
    r"\b(?:jk|just kidding|kidding|lol|(?:ha){2,}|role-?play|pretend|imagine|let's play|you are (?:a|an|my)|act as|in"
    r" character|lyrics"
    r"|short story|novel|screenplay|fictional|hypothetical(?:ly)?|translate|proofread|rewrite|april fools?|joke"
    r"|sarcasm|yeah,? (?:sure|right)|(?:on )?cloud nine|/s"
    r"|my character|reads(?=:)|as me(?=:)|dialogue|quote|the sentence|example sentence|write a|poem)\b",
    I,
)
_LEAD = lazy_pattern(
    r"(?:(?:hey(?: there)?|hi|hello|well|so|oh|ok|okay|yes|yeah|yep|no|btw|by the way|actually|update|fyi|just so"
    r" you know"
    r"|for (?:your information|the record)|good news|big news|great news|bad news|news|quick (?:update|note)"
    r"|reminder|note(?: to self)?"
    r"|please (?:remember|note|update)(?: that)?|remember(?: that)?|note that|correction|heads[- ]up|anyway|also"
    r"|and|but|then|now|today"
    r"|currently|at the moment|right now|these days|nowadays|as of (?:this |last |next )?\w+|from (?:now|today"
    r"|tomorrow|\w+day|next week) on(?:wards?)?"
    r"|after (?:the|our|my) \w+|starting (?:from )?(?:next |this )?\w+|effective \w+|since (?:last |this )?\w+"
    r"|last (?:week|month|year|night|weekend|\w+day)"
    r"|this (?:week|month|year|morning|weekend)|yesterday|recently|finally|unfortunately|sadly|luckily|turns out"
    r"|it turns out(?: that)?"
    r"|in the meantime|meanwhile|change of plans?|plans changed|small change|little change|scratch that|guess what"
    r"|i (?:just )?(?:wanted|want) to (?:let you know|tell you|mention)(?: that)?|let me tell you(?: that)?|due"
    r" to [\w ]+?"
    r"|a (?:week|month|few days|few weeks) ago|two (?:weeks|months) ago|instead|the thing is|i think|i have"
    r" decided|we have decided)\b"
    r"[\s,:!.\u2013\u2014-]*)+",
    I,
)
_SIGNAL = lazy_pattern(
    r"\b(?:now|from (?:now|today|tomorrow|\w+day) on|as of|starting|instead|nowadays|these days|no longer|any"
    r" ?more|correction"
    r"|update|changed?|currently|recently|finally|has become|became|since (?:last|this|yesterday|today)|scratch"
    r" that|effective"
    r"|at the moment|meanwhile|just|already|turned)\b",
    I,
)
_END = lazy_pattern(
    r"(?<!\d)[,;](?!\d)|\s[-\u2013\u2014(]|\s(?:since|because|which|that|who|whom|whose|where|when|if|so|but|as"
    r" of|from (?:now|today|\w+day) on"
    r"|starting|until|after|before|with my|with his|with her|for the past|by the way|last (?:week|month|year"
    r"|night|weekend|\w+day)|this (?:week|month|year|morning)"
    r"|yesterday|today|a (?:few )?(?:week|month|day)s? ago|two (?:weeks|months) ago|(?:these|nowa)days|at the"
    r" moment|right now|any ?more|any longer|recently|finally"
    r"|due to|and (?:i|we|it|my|the|he|she|love|really)|thanks?|to be (?:closer|near)|for (?:our|my|the)|full[-"
    r" ]time|part[- ]time)\b"
    r"|(?:\s+(?:now|already|currently|instead|again|though|too|permanently|officially))+\s*$",
    I,
)
_INSTEAD = lazy_pattern(
    r"(?:,?\s*(?:instead of|rather than|no longer|not(?= \S+(?: \S+)?$))\s+)(?P<old>(?:at |on |in )?[^,;]+)$", I
)
_ADVERBS = lazy_pattern(
    r"(?:(?:just|now|recently|finally|already|officially|actually|also|still|currently|(?:have|has|had)(?! an? )"
    r"|since|already|temporarily|permanently"
    r"|mostly|usually|always|generally|normally|typically|really|proudly|happily|happy to|lately|even|both|only"
    r"|both|already)\s+)+",
    I,
)


def expanded(text: str) -> str:
    """Return the text without contractions. Apostrophes are straight."""
    if "'" not in text:
        return text
    for contraction, written in _PRONOUNS + _NEGATIONS:
        text = text.replace(contraction, written)
    return _IS.sub(" is ", _ENDING.sub(lambda ending: _ENDINGS[ending[1].lower()], text))


def is_doubtful(sentence: str) -> bool:
    """Return True if a sentence plans, wishes, supposes or tells of the past."""
    return _DOUBT.search(sentence) is not None


def is_fiction(text: str) -> bool:
    """Return True if a text jokes, plays a role or speaks about texts."""
    return _FICTION.search(text) is not None


_CLAUSE = lazy_pattern(
    r"\s*[,;]?\s+(?:and|but|so)\s+(?=(?:then\s+|now\s+|just\s+|have\s+)*(?:i|we|my|our|the|it|now|am|live|work"
    r"|moved|joined|bought|switched"
    r"|started|drive|use|married|became)\b)|\s*[;\u2014\u2013]\s+|[,;]\s+(?=(?:i|we|my|our|now|so|the|left"
    r"|started|joined|moved|bought|quit)\b)|[,;]\s+so\s+|;\s+|:\s+(?=(?:i|we|my|our|the)\b)",
    I,
)
_MAY_FOLLOW = lazy_pattern(r"[,;:\u2014-]\s*(?:and |so )?(?:it|they|that|the new|use|now)\b", I)
_FOLLOWED = lazy_pattern(
    r"(?:.*?\b(?:i|we|they|the \w+)\s+(?:have |has |had to |just |finally )*(?:reset|changed|updated|doubled"
    r"|replaced|moved|raised|lowered|cut|set|rotated|switched|renamed|increased|reduced"
    r"|got|upgraded)\s+)?(?P<noun>(?:my|our|the|an?)\s+(?:[\w'-]+ ){0,4}?[\w-]+?)(?:\s+(?:has |was |got |just "
    r"|have )*(?:been )?(?:changed|updated|reset|moved|rotated|switched))?"
    r"(?: from (?P<old>[^,;:]+?))?\s*[,;:\u2014-]+\s*(?:and |so )?(?:(?:it|they|that|the new (?:one|\w+)) (?:is"
    r"|are)|use|now it is|it is now|now use)\s+(?:now )?(?P<new>\S.*)$",
    I,
)
_TWO_PARTS = lazy_pattern(
    (
        r"\b(?:sold|traded|left|quit|resigned)\b.+\b(?:and|to) (?:i |we )?(?:then |now |have )?(?:bought|got"
        r"|purchased|joined|join|work|started)\b"
    ),
    I,
)
_SUBJECT = lazy_pattern(
    r"(?P<me>(?i:i|the user|user))\b(?!')\s*|(?P<us>(?i:we|the team|our team|us))\b\s*"
    r"|(?P<other>(?:(?i:my|our)\s+(?:\w[\w-]*\s+){0,2}?(?!(?:now|was|is|has|were|are|got|been|have)\b)\w[\w-]*|"
        r"(?!My|Our|The)[A-Z][a-z]+(?:\s[A-Z][a-z]+)?|(?i:the) (?:\w+ )?(?!(?:now|was|is|has|were|are|got|been"
        r"|have)\b)\w+))\s+(?="
    r"(?:(?:just|now|recently|finally|currently|has|have|still|no longer|does not|did not|already|officially"
        r"|mostly|usually|always)\s)*"
    r"(?:(?:is|are|was|has been|got)\s(?:(?:now|already|currently)\s)?)?"
    r"(?:lives?|living|moved (?:from|out|away|back|in)|moved to(?= (?-i:[A-Z]))|works?\b|working|joined|drives?"
        r"|uses?|using|switched|migrated|quit|left|turned|weighs?|studies|based"
    r"|relocated|married|dating|engaged|resides?|runs? on|\d+ years?|goes to|eats?|bought|sold|vegan|vegetarian"
        r"|listens? on|hosted|deployed"
    r"|no longer|not (?:\w+ )+any ?more|(?:an? )(?:\w+ )?" + PROFESSIONS + r")\b)",
)  # fmt: skip


def statements(sentence: str) -> Iterator[Statement]:
    """Yield what one sentence says of slots."""
    sentence = sentence.rstrip(".! ")
    words = set(sentence.lower().split())
    if words.isdisjoint(_VERB_WORDS) and ": " not in sentence:
        return
    sentence = expanded(sentence)
    if followed := _of_following(sentence):
        yield followed
        return
    subject = ""
    for part in _parts(sentence, words):
        clause, is_new = part.strip(" ,.!:-\u2014\u2013\"'"), False
        if match := _LEAD.match(clause):
            is_new, clause = _SIGNAL.search(match[0]) is not None, clause[match.end() :]
        for found, of_clause in list(_of_clause(clause, subject)):
            yield found._replace(signal="change") if is_new and not found.signal else found
            subject = of_clause


def _of_following(sentence: str) -> Statement | None:
    """Return the statement of "we reset the alarm code, it is 7391 now"."""
    match = _FOLLOWED.match(sentence) if _MAY_FOLLOW.search(sentence) else None
    slot = noun_slot(match["noun"]) if match and not _NO_NOUN.search(match["noun"]) else None
    value = _value_of(match["new"])[0] if match else ""
    if match is None or slot is None or not value:
        return None
    return Statement(*slot, value, "change", _value_of(match["old"] or "")[0])


_AGED = lazy_pattern(
    r"(?:my|our)? ?(?P<who>(?:(?:older|younger|oldest|youngest|little|big|baby|twin|elder|middle) )?(?:son"
    r"|daughter|brother|sister|mother|father|mom|mum|dad|wife|husband|partner"
    r"|nephew|niece|cousin|grandmother|grandfather|grandson|granddaughter|baby|girlfriend|boyfriend|dog|cat|kid"
    r"|child|boy|girl)(?: (?-i:[A-Z])\w+)?|(?-i:[A-Z])[a-z]+) "
    r"(?P<before>(?:just |has |recently )*)(?P<verb>is|turned|has turned) (?P<adv>(?:now |already )*)"
    r"(?P<age>\d{1,3})(?: years? old| years| yo)?(?P<now> now| today| already)?$",
    I,
)
_OF_NOUN = lazy_pattern(
    r"(?P<name>[A-Z][\w.-]+(?: [A-Z][\w.-]+){0,2}) is (?P<now>now )?(?P<noun>(?:my|our|the new) [\w -]+?)"
    r"(?P<then> now| these days)?$"
)


_LABEL = lazy_pattern(r"(?P<noun>(?:(?:my|our|the|new) )?(?:[\w-]+ ){0,3}[\w-]+): (?P<value>\S.*)$", I)
_CHANGE_VERB = (
    r"(?:changed|moved|pushed|postponed|rescheduled|raised|lowered|increased|reduced|extended|renamed|shifted|delayed"
    r"|bumped|cut|updated|delay|postpone|reschedule|move|push|change|raise|lower)"
)
_CHANGED_BY = lazy_pattern(
    r"(?:they|he|she|(?:i|we) (?:have |had to )?|(?:the|our|my) [\w ]{2,20}?|[A-Z]\w+) ?"
    + _CHANGE_VERB
    + r" (?P<noun>(?:my|our|the) .+?) (?:back |forward |up |down )?(?:from (?P<old>.+?) )?to (?P<new>(?:(?! to ).)+)$",
    I,
)
_BARE = lazy_pattern(
    (
        r"(?:just |finally )?(?:moved|started|joined|left|quit|switched|bought|sold|changed|cancelled|upgraded"
        r"|relocated|became|turned|migrated|replaced|got promoted|rescheduled|postponed|pushed)\b"
    ),
    I,
)


def _parts(sentence: str, words: set[str]) -> list[str]:
    """Return the clauses of a sentence."""
    has_two_parts = not words.isdisjoint(_ENDING_VERBS) and _TWO_PARTS.search(sentence)
    if has_two_parts or (words.isdisjoint(_JOINING) and not _MARK.search(sentence)):
        return [sentence]
    return _CLAUSE.split(sentence)


_ENDING_VERBS_TEXT = "sold traded left quit resigned"
_ENDING_VERBS: Final = frozenset(_ENDING_VERBS_TEXT.split())
_JOINING_TEXT = "and but so"
_JOINING: Final = frozenset(_JOINING_TEXT.split())
_MARK = lazy_pattern("[,;:\u2014\u2013]")


def _of_clause(clause: str, previous: str) -> Iterator[tuple[Statement, str]]:
    """Yield the statements of a clause, each with its subject. A clause without one continues `previous`."""
    for rule in (_of_age, _of_name, _of_label, _of_change_by):
        if statement := rule(clause):
            yield statement, statement.subject
            return
    match = _SUBJECT.match(f"I {clause}" if _BARE.match(clause) else clause)
    if match:
        subject = SPEAKER if match["me"] else GROUP if match["us"] else name_of(match["other"])
        found = [_of_thing(one, match["other"]) for one in _of_verb(subject, match.string[match.end() :])]
    else:
        subject, found = previous, list(_of_verb(previous, clause)) if previous else []
    for statement in found:
        yield statement, subject
    if not found and not (match and match["me"]):
        for statement in _of_noun(clause):
            yield statement, statement.subject


def _of_age(clause: str) -> Statement | None:
    """Return the statement of "my son just turned 7"."""
    match = _AGED.match(clause) if clause[-1:].isalnum() else None
    if match is None:
        return None
    is_new = match["verb"] != "is" or match["now"]
    return Statement("age", name_of(match["who"]), match["age"], "change" if is_new else "")


def _of_name(clause: str) -> Statement | None:
    """Return the statement of "Tom Reyes is my new boss"."""
    match = _OF_NOUN.match(clause)
    slot = noun_slot(match["noun"]) if match else None
    if match is None or slot is None or _OLD.match(match["noun"]) or slot.relation not in _NAMED_RELATIONS:
        return None
    is_new = _WAS_NEW.match(match["noun"]) or match["now"] or match["then"]
    return Statement(*slot, match["name"], "change" if is_new else "")


def _of_label(clause: str) -> Statement | None:
    """Return the statement of "rate limit: 100 requests"."""
    match = _LABEL.match(clause) if ": " in clause else None
    slot = noun_slot(match["noun"]) if match and _names_thing(match["noun"]) else None
    if match is None or slot is None:
        return None
    is_new = _WAS_NEW.match(match["noun"])
    if not is_new and not is_single(slot.relation):
        return None
    return Statement(*slot, _value_of(match["value"])[0], "change" if is_new else "")


def _of_change_by(clause: str) -> Statement | None:
    """Return the statement of "the airline moved my flight to 8:40"."""
    match = _CHANGED_BY.match(clause) if " to " in clause else None
    slot = noun_slot(match["noun"]) if match and _names_thing(match["noun"]) else None
    if match is None or slot is None:
        return None
    value, replaces = _value_of(match["new"])
    return Statement(*slot, value, "change", _value_of(match["old"] or "")[0] or replaces)


def _names_thing(noun: str) -> bool:
    return not (_NO_NOUN.search(noun) or _OLD.match(noun))


def _of_thing(statement: Statement, words: str | None) -> Statement:
    """Return a statement about where a thing is as one of that thing: "our office moved to The Hague"."""
    if words and statement.relation == "home" and not _is_person(words) and (slot := noun_slot(words)):
        return statement._replace(relation=slot.relation, subject=slot.subject)
    return statement


_KIN = lazy_pattern(
    r"\b(?:son|daughter|brother|sister|mother|father|mom|mum|dad|wife|husband|partner|nephew|niece|cousin"
    r"|grand\w+|girlfriend|boyfriend|kid|child|children|kids|parents|friend|boss|colleague"
    r"|aunt|uncle|roommate|neighbou?r|fianc\w+|manager|landlord|doctor|teacher|user|in-laws?|baby)\b",
    I,
)


def _is_person(words: str) -> bool:
    return _KIN.search(words) is not None or not re.match(r"(?:my|our|the)\b", words, I)


_rules = partial(compiled, flags=I)
_TO = r"(?:(?:back |over |away |out )?(?:from (?P<old>[^,]+?) )?(?:in)?to (?:be (?:a|an) )?(?P<new>.+))"
_NEXT_JOB = r"(?:(?:as (?:an? |the )?(?P<role>.+?))?(?: ?(?:at|for|with) (?P<new>.+))?)$"
_VERBS: Final[dict[str, tuple[Rule, ...]]] = {
    "live": _rules(((
        r"(?:live|lives|living|reside|resides|residing|stay) (?:at|on) (?P<new>\d.+|.+ (?:street|road|avenue|lane"
        r"|st\.?|rd\.?))$"
    ), "address", ""),
        ((
            r"(?:live|lives|living|reside|resides|residing|based|am based) (?:happily |alone |together )?(?:over )?"
            r"(?:in|near|at|on|outside) (?P<new>.+)"
        ), "home", "")),
    "move": _rules((r"(?:moved|relocated|am moving|emigrated) " + _TO, "home", "change"),
        (r"(?:moved|settled) (?:to|in) (?P<new>.+)", "home", "change"),
        (r"moved (?:out of|away from|from) (?P<old>.+?) (?:in)?to (?P<new>.+)", "home", "change"),
        (r"moved (?:out of|away from) (?P<gone>.+)", "home", "negation")),
    "work": _rules(((
        r"(?:work|works|working) (?:remotely )?as (?:an? |the )?(?P<role>.+?)(?: (?:at|for|with) (?P<new>.+))?$"
    ), "job", ""),
        ((
            r"(?:work|works|working|am employed|employed) (?:remotely )?(?:at|for) (?P<new>(?!home\b|night|it\b|the "
            r"(?:office|moment|same)|that|this|my\b|our\b|me\b|them|him|her|now|least|all\b|free|hours|\d|him"
            r"|everyone|some|a living|a while|years|so long).+)"
        ), "employer", "")),
    "join": _rules((r"joined (?P<new>[A-Z][^,]*?)(?: as (?:an? |the )?(?P<role>.+))?$", "employer", "change"),
        ((
            r"(?:started|began|got|accepted|took|found|landed) (?:working|a (?:new )?(?:job|position|role)|work|an?"
            r" offer) ?"
        ) + _NEXT_JOB, "employer", "change"),
        (r"started (?:out )?at (?P<new>[A-Z].*)", "employer", "change"),
        (r"(?:got|been|was|am|were) (?:hired|employed|recruited) (?:by|at) (?P<new>.+)", "employer", "change"),
        (r"(?:got|been|was) promoted to (?P<role>.+)", "job", "change"),
        (r"(?:became|become|turned into) (?:an? |the )?(?P<role>(?:\w+ ){0,3}" + PROFESSIONS + r"\b.*)",
         "job", "change"),
        (r"(?:became|become|turned|went) (?P<new>" + DIETS + r")\b", "diet", "change"),
        (r"(?:switched|changed) jobs? (?:from (?P<old>.+?) )?to (?P<new>.+)", "employer", "change")),
    "quit": _rules(((
        r"closed my (?P<old>.+?) account and (?:have )?opened (?:one|an account|a new one) (?:at|with) (?P<new>.+)"
    ), "bank", "change"),
        ((
            r"(?:quit|left|resigned from|gave up) (?:my (?:job|position|role|post) (?:at|with) )?(?P<old>[A-Z][\w&."
            r" -]*?)(?: to join| and (?:i )?(?:have )?joined| and (?:i )?(?:now )?work (?:at|for)| and (?:i )?started"
            r" (?:working )?(?:at|with)| for) (?P<new>[A-Z].*)"
        ), "employer", "change"),
        ((
            r"(?:quit|left) my job and (?:i )?(?:joined|started (?:working )?at|now work (?:at|for)) (?P<new>[A-Z].*)"
        ), "employer", "change"),
        ((
            r"(?:quit|left|resigned from|lost|gave up|was (?:fired|laid off) from|got (?:fired|laid off) from|been "
            r"(?:fired|laid off) from) my (?:job|position|role|post)(?: (?:at|with|as (?:an?|the)?) ?(?P<gone>.+))?$"
        ), "employer", "negation"),
        (r"(?:was|got|been) (?:fired|laid off|let go)(?: (?:from|by) (?P<gone>.+))?$", "employer", "negation"),
        ((
            r"(?:left|quit|resigned from|cancelled my (?:membership|subscription) (?:at|with)) (?P<gone>[A-Z].*)"
        ), LEAVES, "negation"),
        (r"retired(?: from .+)?$", "job", "change")),
    "drive": _rules(((
        r"(?:drive|drives|driving) (?!to\b|home|there|back|past|by\b|my\b|the\b|around|away|me\b|people|kids|for\b"
        r"|through|in\b|from|\w+ly\b)(?:an? |one of )?(?P<new>.+)"
    ), "car", ""),
        ((
            r"sold (?:my |our |the )?(?:old )?(?P<old>.+?) (?:and|to) (?:i |we )?(?:bought|buy|got|get|purchased) "
            r"(?:an? |myself an? |another )?(?:new )?(?P<new>.+)"
        ), "car", "change"),
        ((
            r"traded (?:in )?(?:my |our |the )?(?:old )?(?P<old>.+?) (?:in )?for (?:an? )?(?:new )?(?P<new>.+)"
        ), "car", "change"),
        ((
            r"(?:bought|got|purchased|leased) (?:an? |myself an? |another |the )?(?:new |used )?car,? ?(?:an? |it is"
            r" an? |namely an? )?(?P<new>[A-Z\u0022].*)"
        ), "car", "change"),
        (r"sold (?:my |our |the )(?:old )?(?P<gone>.+)", "sell", "negation")),
    "use": _rules(((
        r"(?:use|uses|using|write in|code in|develop in) (?P<new>.+?)(?: (?P<what>(?:for|in|as|on) .+))?$"
    ), USES, ""),
        ((
            r"(?:run|runs|running|listen|listens|hosted|deployed|deploy|deploys|host|hosts|is hosted|is deployed|"
            r"(?:store|track|take|keep|write|manage|edit|save) (?:our |my |the )?\w+) (?P<prep>on|in|to|with) "
            r"(?P<new>.+)"
        ), "run", ""),
        ((
            r"(?:switched|migrated|moved|changed|converted|transitioned|upgraded|downgraded|ported) (?:everything "
            r"|all (?:our |of our |my )?\w+ |(?:our|my|the) [\w ]+? )?(?:back |over )?from (?P<old>.+?) (?:over )?"
            r"(?:in)?to (?:using )?(?P<new>.+)"
        ), USES, "change"),
        ((
            r"(?:switched|migrated|changed|transitioned|upgraded|moved over) (?:back |over )?to (?:using )?"
            r"(?P<new>.+)"
        ), USES, "change"),
        ((
            r"(?:replaced|swapped|swapped out|ditched|dropped|exchanged|traded) (?:my |our |the )?(?:old )?"
            r"(?P<old>.+?) (?:with|by|for|in favou?r of) (?:an? |my |our |the )?(?P<new>.+)"
        ), USES, "change"),
        ((
            r"(?:wiped|removed|deleted|uninstalled) (?P<old>.+?) and (?:i |we )?(?:installed|now use|use) (?P<new>.+)"
        ), USES, "change"),
        (r"rewrote (?:our |my |the )?(?P<what>.+?) in (?P<new>.+)", "rewrite", "change"),
        ((
            r"(?:no longer use|stopped using|got rid of|(?:dropped|ditched)(?! (?:off|by|out|in|me|them|him|her)\b)"
            r"|abandoned|do not use|uninstalled|does not use|no longer uses) (?P<gone>.+)"
        ), USES, "negation")),
    "eat": _rules(((
        r"(?:do not|no longer|stopped|quit|gave up) eat(?:ing)? (?P<without>meat|fish|dairy|gluten|eggs|animal"
        r" products)\b.*"
    ), "diet", "change"),
        (r"(?:am|is) (?:now )?(?:on )?(?:an? )?(?:strict )?(?P<new>" + DIETS + r")\b(?: diet)?", "diet", ""),
        ((
            r"(?:stopped being|am no longer|is no longer|am not|quit being|gave up being) (?:an? )?(?P<gone>"
        ) + DIETS + r")\b", "diet", "negation"),
        (r"(?:dropped|ditched|quit|stopped|gave up) (?:the )?(?P<gone>" + DIETS + r")\b.*", "diet", "negation"),
        (r"(?:started|began) (?P<new>eating (?:meat|fish|dairy|eggs))\b(?: again)?", "diet", "change"),
        (r"(?:follow|am on|is on) (?:an? |the )?(?P<new>.+? diet)\b", "diet", "")),
    "age": _rules(((
        r"(?:am|is|are|turned|just turned) (?P<new>\d{1,3})(?: ?(?:years?[- ]old|years|yo|y/o))?(?: now| today|"
        r" yesterday| last \w+)?$"
    ), "age", ""),
        ((
            r"(?:am|is|are) (?P<new>\d[\d.,']* ?(?:cm|m|meters|metres|feet|ft|centimeters|inches)\b.*?)(?: tall)?$"
        ), "height", ""),
        (r"weighs? (?:about |around )?(?P<new>\d.*)", "weight", "")),
    "married": _rules((r"(?:am|is|got|are|been) (?:now )?(?:married|engaged) to (?P<new>.+)", "partner", ""),
        (r"(?:am|is) (?:now )?(?:dating|seeing|in a relationship with|together with) (?P<new>[A-Z].*)", "partner", ""),
        (r"(?:married|am married to) (?P<new>[A-Z].*)", "partner", "change"),
        (r"(?:am|is) not (?P<single>married|in a relationship|dating)\b.*", "marital status", ""),
        (r"(?:am|is|got|am now|became) (?P<new>single|married|divorced|engaged|widowed)\b.*", "marital status", ""),
        ((
            r"(?:broke up with|separated from|divorced|split up with|am no longer (?:with|dating|married to)) "
            r"(?P<gone>.+)"
        ), "partner", "negation")),
    "gym": _rules(((
        r"(?:go|goes) to (?:the |a )?(?:gym|fitness studio) at (?P<new>.+)"
    ), "gym", ""), ((
        r"(?:go|goes) to (?P<new>.+?) (?:gym|for the gym|to work out)$"
    ), "gym", ""), (r"(?:train|trains|work out|works out) at (?P<new>.+)", "gym", ""),
        (r"(?:bank|banks) (?:with|at) (?P<new>.+)", "bank", ""), ((
            r"(?:am|is|are) insured (?:with|by|at) (?P<new>.+)"
        ), "insurance", ""),
        (r"(?:study|studies|studying|am studying|am enrolled) (?P<what>[\w ]+? )?at (?P<new>.+)", "school", ""),
        ((
            r"(?:go|goes) to (?P<new>[A-Z].*(?:school|university|college|elementary|academy|kindergarten|daycare"
            r"|primary|high|grammar).*)"
        ), "school", ""),
        (r"(?:pay|pays|am paying) (?P<new>[^a-z]*\d.*?)(?: (?:in|for|of) (?:my )?rent)(?: .*)?$", "rent", ""),
        (r"(?:earn|earns|make|makes) (?P<new>[^a-z\s]*\d.*)", "salary", ""),
        ((
            r"(?:wake up|get up|wakes up|gets up|go to bed|goes to bed|start work|finish work|have lunch|leave for"
            r" work) (?P<new>(?:at|around) .+)"
        ), "routine", ""),
        (r"(?:take|takes|am taking|am on|is on) (?P<new>\d+ ?(?:mg|mcg|milligrams|ml|units)\b.*)", "dose", ""),
        (r"(?:wear|wears) (?:a )?(?:shoe )?size (?P<new>\d.*)", "shoe size", ""),
        (r"(?:report|reports) to (?P<new>[A-Z].*)", "boss", ""),
        (r"(?:go|goes) by (?P<new>[A-Z].*)", "nickname", ""), (r"am called (?P<new>[A-Z].*)", "name", ""),
        (r"(?:commute|commutes|go to work|get to work) (?P<new>(?:by|on) .+)", "commute", ""),
        (r"(?:drink|drinks) (?P<new>.+?) (?P<what>every .+|in the .+|for breakfast)$", "drink", "")),
    "taste": _rules((r"(?:prefer|prefers) (?P<new>\S+ (?P<what>\S+))(?: now| these days)?$", "prefer", ""),
        (r"(?:am|is) reading (?P<new>[A-Z].*)", "reading", ""),
        (r"(?P<new>smoke|smokes|vape|vapes)(?: .*)?$", "habit", ""),
        (r"(?:quit|stopped|gave up|have quit) (?P<gone>smok|vap)ing\b.*", "habit", "negation")),
    "be": _rules(((
        r"(?:am|is) (?:now |currently )?(?:working as )?(?:an? |the )(?P<role>(?:[\w-]+ ){0,3}"
    ) + PROFESSIONS + r"\b)(?: (?:at|for|with) (?P<new>[A-Z].*))?(?: .*)?$", "job", ""),
        ((
            r"(?:am|is) (?:no longer|not) (?:an? |the )(?P<gone>(?:[\w-]+ ){0,3}"
        ) + PROFESSIONS + r"\b).*$", "job", "negation"),
        (r"(?:am|is) employed (?:at|by|with) (?P<new>.+)", "employer", ""),
        (r"(?:am|is) (?:down|up) to (?P<new>\d.* ?(?:kg|kilos?|pounds|lbs))\b.*", "weight", "change"),
        (r"(?:am|is|are) (?:now |currently )?based (?:in|out of) (?P<new>.+)", "home", ""),
        (r"(?:am|is) (?:now )?unemployed$", "employer", "change")),
    "no": _rules(((
        r"(?:no longer live|do not live|does not live|no longer lives|am no longer living) (?:in|at) (?P<gone>.+)"
    ), "home", "negation"),
        ((
            r"(?:no longer work|do not work|does not work|no longer works) (?:at|for|with) (?P<gone>.+)"
        ), "employer", "negation"),
        ((
            r"(?:no longer work|do not work|does not work|no longer works) as (?:an? |the )?(?P<gone>.+)"
        ), "job", "negation"),
        (r"(?:no longer drive|do not drive|no longer drives) (?:an? |the |my )?(?P<gone>.+)", "car", "negation"),
        (r"(?:no longer (?:have|own)|do not (?:have|own)) (?:an? |the |my |any )?(?P<gone>.+)", "have", "negation")),
    "change": _rules(
        ((
            r"(?:changed|moved|pushed|postponed|rescheduled|updated|raised|lowered|increased|reduced|extended|set"
            r"|bumped|shifted|delayed|brought|renamed|switched|migrated|upgraded|downgraded|cut)"
            r" (?P<noun>(?:my|our|the) .+?) (?:back "
            r"|forward |up |down )?(?:from (?P<old>.+?) )?to (?P<new>.+)"
        ), "", "change"),
        ((
            r"(?:got|have|has|bought) (?:an? )?(?P<noun>new .+?)(?:,? (?:it is|which is|namely|called|named)|:) "
            r"(?P<new>.+)"
        ), "", "change"),
        ((
            r"(?:changed|replaced|switched) (?P<noun>(?:my|our|the) .+?)(?:,? (?:it is|the new one is)(?: now)?|:) "
            r"(?P<new>.+)"
        ), "", "change")),
}  # fmt: skip
_BY_FIRST: Final[dict[str, tuple[str, ...]]] = {
    word: tuple(kinds.split())
    for line in """live|lives|living|reside|resides|residing|stay: live
    based: live
    moved: move use change
    relocated|settled|emigrated: move
    work|works|working|employed: work gym
    joined|began|accepted|landed|found|took|hired: join
    started: join eat
    got: join married change quit use
    became|become|been|turned|went: join age use married quit eat
    quit|left|resigned|lost|retired|cancelled: quit eat taste
    closed: quit
    wiped|removed|deleted: use
    rewrote|ported: use
    prefer|prefers|reading|smoke|smokes|vape: taste
    gave: quit eat taste
    was|were: quit join
    drive|drives|driving|sold|traded|bought|purchased|leased: drive use change
    use|uses|using|write|code|develop|run|runs|running|listen|listens|hosted|deployed: use change
    deploy|deploys|host|hosts|store|track|converted|transitioned: use change
    replaced|swapped|exchanged|abandoned|uninstalled|ported: use change
    dropped|ditched: eat use change
    upgraded|downgraded: change use
    switched|changed: join change use
    stopped: eat taste use
    am|is|are: eat taste age married be gym use live no work join
    do|does|no: eat no use
    follow: eat\nturned: age join\nweigh|weighs: age\nmarried|broke|separated|divorced|split: married
    take|takes: gym use
    keep|manage|edit|save: use
    migrated: change use
        go|goes|train|trains|bank|banks|study|studies|studying|pay|pays|earn|earns|make: gym change
    makes|wake|wakes|get|gets|start|finish|wear|wears|report|reports|commute|commutes: gym change
    drink|drinks|have: gym change
    pushed|postponed|rescheduled|updated|raised|lowered|increased|reduced|extended|set|bumped: change
    shifted|delayed|brought|renamed|cut: change""".splitlines()
    for words, kinds in [line.strip().split(": ")]
    for word in words.split("|")
}  # fmt: skip
_FIRST = lazy_pattern(r"[a-z]+", I)
_NO_LONGER = lazy_pattern(r"\b(?:any ?more|any longer|no longer|stopped)\b", I)


_PROGRESSIVE = lazy_pattern(
    (
        r"^(?:am|is|are|been) (?=(?:now )?(?:living|working|driving|using|studying|staying|residing|training|earning"
        r"|paying|taking|running)\b)"
    ),
    I,
)


def _of_verb(subject: str, rest: str) -> Iterator[Statement]:
    """Yield the statement that a predicate says of a subject."""
    signal: Signal = ""
    if match := _ADVERBS.match(rest):
        rest = rest[match.end() :]
        if _SIGNAL.search(match[0]):
            signal = "change"
    rest = _PROGRESSIVE.sub("", rest)
    first = _FIRST.match(rest)
    for kind in _BY_FIRST.get(first[0].lower(), ()) if first else ():
        for pattern, relation, own_signal in _VERBS[kind]:
            if match := pattern.match(rest):
                yield from _from_match(match, subject, relation, own_signal or signal, rest)
                return


PROJECT_TEXT = (
    """project frontend codebase app team company application startup product stack site website service backend"""
)
PROJECT: Final = frozenset(PROJECT_TEXT.split())


def _from_match(match: re.Match[str], subject: str, relation: str, signal: Signal, rest: str) -> Iterator[Statement]:
    groups = {name: value for name, value in match.groupdict().items() if value}
    if not signal and _SIGNAL.search(rest):
        signal = "change"
    if signal == "negation":
        yield from _ended(groups.get("gone", ""), subject, relation, rest)
        return
    value, replaces = _value_of(groups.get("new", ""))
    replaces = _value_of(groups.get("old", ""))[0] or replaces
    if noun := groups.get("noun"):
        slot = noun_slot(f"my {noun}" if noun.lower().startswith("new ") and subject == SPEAKER else noun)
        if slot and value:
            yield Statement(*slot, value, "change", replaces)
        return
    if _NO_VALUE.match(value):
        return
    if relation == "partner" and (state := re.search(r"\b(?:married|engaged)\b", rest, I)):
        yield Statement("marital status", subject, state[0].lower(), signal)
    if relation in {"job", "employer"}:
        yield from _of_work(groups, subject, signal, value=value, replaces=replaces, rest=rest)
        return
    value = _special_value(relation, value, groups)
    if relation == USES and groups.get("what", "").startswith(("in ", "for ")):
        value = f"{value} {groups['what']}"
    relation, subject = _special_slot(relation, subject, groups, value=value, replaces=replaces, rest=rest)
    if relation and value:
        yield Statement(relation, owner_of(subject, relation), value, signal, replaces)


_NO_VALUE = lazy_pattern(r"(?:not|no|to|it\w*|them|that|this|home)(?:\s|$)", I)


def _ended(written: str, subject: str, relation: str, rest: str) -> Iterator[Statement]:
    """Yield the statement that a value holds no longer. "I do not drive a Fiat" says nothing of what was."""
    if rest.lower().startswith(("do not", "does not", "am not", "is not")) and not _NO_LONGER.search(rest):
        return
    gone = _value_of(written)[0]
    if relation == USES and gone:
        relation = relation_of_tool(gone)
    relation = "car" if relation == "sell" else relation
    yield Statement(relation, owner_of(subject, relation), gone, "negation")


def _of_work(
    groups: dict[str, str], subject: str, signal: Signal, *, value: str, replaces: str, rest: str
) -> Iterator[Statement]:
    """Yield the job and the employer of "I work as a nurse at Charité"."""
    role = _value_of(groups.get("role", ""))[0]
    ended = next((word for word in ("retired", "unemployed") if word in rest.lower()), "")
    if role or (ended and not value):
        yield Statement("job", subject, role or ended, signal)
    if value or not (role or ended):
        yield Statement("employer", subject, value, signal, replaces)


def _special_value(relation: str, value: str, groups: dict[str, str]) -> str:
    if "single" in groups:
        return "single"
    if "without" in groups:
        return f"no {groups['without']}"
    if relation == "habit":
        return value[:4].removesuffix("s").removesuffix("e")
    return value or groups.get("gone", "")


def _special_slot(
    relation: str, subject: str, groups: dict[str, str], *, value: str, replaces: str, rest: str
) -> tuple[str, str]:
    """Return relation and subject of predicates whose relation depends on the value; an empty relation for none."""
    what = groups.get("what", "").lower()
    if relation == "home" and relation_of_tool(f"{value} {replaces}") != USES:
        relation = USES
    if relation == "rewrite":
        kind = relation_of_tool(value)
        return "" if kind == USES else kind, GROUP if what in PROJECT else what
    if relation in {USES, "run"}:
        used = relation_of_use(value, replaces, "" if relation == "run" else _NOW.sub("", what))
        if relation == "run" and used == USES:
            used = "port" if "port" in value else ""
        return used, GROUP if subject in PROJECT else subject
    if relation == "prefer":
        return f"prefer {what}", subject
    if relation == "dose":
        return f"dose {_UNIT.sub('', value.lower()).strip()}".strip(), subject
    if relation == "routine":
        return re.split(r"\s(?:at|around)\s", rest)[0].lower(), subject
    return f"{relation} {what}" if relation == "drink" else relation, subject


_NOW = lazy_pattern(r" (?:now|currently|these days)$")
_UNIT = lazy_pattern(r".*(?:mg|mcg|milligrams|ml|units)(?: of)?")


def _value_of(written: str) -> tuple[str, str]:
    """Return a value without what follows it, and the old value that it names after "instead of"."""
    replaces = ""
    if match := _INSTEAD.search(written):
        written, replaces = written[: match.start()], match["old"]
    if match := _END.search(written):
        written = written[: match.start()]
    written = re.sub(
        r"^(?:with|by|now|currently|officially|exactly|about|around|already|called|named|an?|the|actually)\s+",
        "",
        written.strip(" .,!:\"'`"),
        flags=I,
    )
    return written[:60].strip(" .,!:\"'`"), replaces.strip(" .,!")


_CHANGED = (
    r"(?:moved|changed|pushed|postponed|rescheduled|switched|updated|raised|increased|lowered|reduced|extended"
    r"|renamed|bumped|shifted"
    r"|delayed|upgraded|downgraded|migrated|replaced|set|brought|went|rose|dropped|fell|grew|relocated|cut|reset"
    r"|reassigned)"
)
_NOUN = lazy_pattern(
    r"(?P<noun>(?:(?:my|our|the|this|[A-Z]\w+'s|[Tt]he user's|[Mm]y \w+'s)\s+)?(?:[\w'/.&-]+\s+){0,6}?[\w'/&.-]+?)\s+"
    r"(?P<before>(?:(?:now|currently|just|recently|finally|also|actually|officially|has|have|had)\s+)*)"
    r"(?:(?P<not>(?:is|are) no longer|is not|are not)\s+(?P<gone>.+)"
    r"|(?:(?:is|are|was|were|has been|have been|got|been|is being|will be)\s+)?(?:now\s+)?(?P<changed>"
    + _CHANGED
    + r")\s+(?:back |forward |up |down |over |ahead )?"
    r"(?:from (?P<old>.+?) )?(?P<prep>to|until|by|with|at|for|into)\s+(?P<to>.+)"
    r"|(?P<be>(?:is|are) (?:now |currently )?(?:written|hosted|deployed)|is|are|will be|has become|became|becomes"
    r"|takes place|take place|happens|meets|comes|starts|begins|opens|closes|ends|leaves|departs|costs?|runs"
    r"|expires|arrives"
    r"|listens|belongs to|uses|equals|remains)\s+(?P<adv>(?:(?:now|currently|still|actually|officially|always"
    r"|usually)\s+)*)"
    r"(?P<called>(?:called|named|set to|scheduled for|due|held|at|on|in|for|planned for|from|every)\s+)?(?P<value>.+))",
    I,
)
_NO_NOUN = lazy_pattern(
    r"^(?:i|we|you|he|she|it|they|this|that|there|here|these|those|what|who|where|how|everyone|everything|someone"
    r"|something|nothing|one|which|all|some|most"
    r"|people|life|being|it's|so|today|tomorrow|yesterday)\b|\b(?:i|you|he|she|they|it|me|him|was|were|is|are|had"
    r"|because|that|have|has|been|do|does|did|will)\b|\s(?:my|our|your|his|their|and|we|to(?! (?-i:[A-Z])))\s",
    I,
)
_WAS_NEW = lazy_pattern(r"^((?:(?:my|our|the)\s+)?(?:\w+'s\s+)?)(?:brand[- ]new|new|latest|updated)\s+", I)
_OLD = lazy_pattern(
    (
        r"^((?:my|our|the|\w+'s)\s+)?(?:old|former|previous|ex|ex-|last|first|late|original|next|future|dream|ideal"
        r"|other|second|past)[\s-]"
    ),
    I,
)


def _of_noun(clause: str) -> Iterator[Statement]:
    """Yield the statement of a clause about a noun: "my phone number is 555", "the retro moved to Thursday"."""
    words = clause.lower().split()[:12]
    if not words or words[0] in _NO_FIRST or _NOUN_WORDS.isdisjoint(words):
        return
    match = _NOUN.match(clause)
    slot = noun_slot(match["noun"]) if match and _names_thing(match["noun"]) else None
    if match is None or slot is None:
        return
    if match["not"]:
        if "no longer" in match["not"].lower() or _NO_LONGER.search(match["gone"]):
            yield Statement(*slot, _value_of(_PREPOSITION.sub("", match["gone"]))[0], "negation")
    elif match["changed"]:
        yield from _of_changed_noun(match, slot)
    elif statement := _of_copula(match, slot):
        yield statement


def _of_changed_noun(match: re.Match[str], slot: Slot) -> Iterator[Statement]:
    value, replaces = _value_of(match["to"])
    is_replaced = match["changed"].lower() == "replaced"
    if match["prep"].lower() not in _PREPOSITIONS_OF_NEW and not (match["prep"] == "by" and is_replaced):
        return
    if is_replaced:
        yield _replaced(match["noun"], slot, value)
    elif value:
        yield Statement(*slot, value, "change", _value_of(match["old"] or "")[0] or replaces)


def _of_copula(match: re.Match[str], slot: Slot) -> Statement | None:
    """Return the statement of "the retro is on Thursday now"; None for "my boss is nice"."""
    value, replaces = _value_of(match["value"])
    verb, called = match["be"].lower(), (match["called"] or "").strip().lower()
    signal: Signal = "change" if replaces or _is_new(match) else ""
    if re.match(STATES + "$", state := f"{called} {value}".strip(), I):
        return Statement(*slot, state, signal)
    if not value or _BAD_VALUE.match(value):
        return None
    relation = _relation_of_verb(verb.rpartition(" ")[2], slot, value)
    has_owner = re.match(r"(?:my|our|the)\s|\w+'s\s", match["noun"], I) is not None
    is_said = has_owner or relation in RELATIONS or signal or _HARD_VALUE.search(state)
    if not (relation and is_said and _fits(relation, value, called)):
        return None
    at = "at " if called == "at" and value[:1].isdigit() else ""
    is_of_thing = verb == "listens" and slot.subject == GROUP and slot.relation not in PROJECT
    return Statement(relation, slot.relation if is_of_thing else slot.subject, f"{at}{value}", signal, replaces)


def _is_new(match: re.Match[str]) -> bool:
    """Return True if a clause says that the value of its noun is new."""
    return bool(
        _WAS_NEW.match(match["noun"])
        or _SIGNAL.search(match["before"])
        or _SIGNAL.search(match["adv"])
        or _TAIL_SIGNAL.search(match["value"][:80])
        or match["be"].lower() in {"has become", "became", "becomes"}
    )


_PREPOSITIONS_OF_NEW: Final = frozenset({"to", "until", "with", "into", "for"})
_PREPOSITION = lazy_pattern(r"^(?:in|at|on|for|called|named|set to)\s+", I)


def _relation_of_verb(verb: str, slot: Slot, value: str) -> str:
    """Return the relation that a verb says of a noun, empty if it says none."""
    kind = relation_of_tool(value)
    if verb == "listens":
        return "port"
    if verb in {"uses", "runs", "written", "hosted", "deployed"}:
        return slot.relation if slot.relation in RELATIONS and verb != "uses" else "" if kind == USES else kind
    if verb in {"opens", "closes", "ends", "expires", "arrives", "costs", "cost"}:
        return f"{slot.relation} {verb}"
    return kind if (slot.relation, kind) == ("phone", "phone model") else slot.relation


def _replaced(noun: str, slot: Slot, value: str) -> Statement:
    """Return the statement of "Jenkins was replaced by GitHub Actions"."""
    name = re.sub(r"^(?:my|our|the)\s+", "", noun, flags=I)
    kinds = [kind for kind in (relation_of_tool(name), relation_of_tool(value)) if kind != USES]
    return Statement(*(Slot(kinds[0], GROUP) if kinds else slot), value, "change", name)


_TAIL_SIGNAL = lazy_pattern(
    r"\b(?:now|nowadays|these days|instead|as of|from (?:now|today) on|currently|starting|any ?more)\b", I
)
_BAD_VALUE = lazy_pattern(
    r"(?:not|no|so|very|been|open|vital|too|really|pretty|quite|such|great|good|bad|nice|fine|ok|okay|cool"
    r"|amazing|awesome|awful|terrible|hard|difficult|easy|fun|funny|important"
    r"|what|how|why|that|to|because|like|just|going|getting|coming|working|doing|making|being|having|trying|full"
    r"|about|based|one of|all|always|never"
    r"|something|my|our|your|his|her|their|there|here|gone|dead|broken|happy|sad|sick|better|worse|beautiful"
    r"|crazy|weird|the (?:best|worst|same|most|only|one)|best|worst"
    r"|a (?:bit|lot|little|great|good|big|huge|real)|\w+ing\b|\w+ed\b(?!\s*$)|more|less|also|still|almost|over$"
    r"|up$|down$|out$|off$)\b",
    I,
)
_HARD_VALUE = lazy_pattern(
    (
        r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|\bnoon\b|\bmidnight\b|\b(?:january|february|march|april"
        r"|june|july|august|september|october|november|december)\b"
    ),
    I,
)
_NAMED_RELATIONS_TEXT = (
    "boss partner doctor dentist landlord name surname employer bank gym insurance school home nickname"
)
_NAMED_RELATIONS: Final = frozenset(_NAMED_RELATIONS_TEXT.split())
_NUMBERED_RELATIONS: Final = frozenset(
    {"age", "rent", "salary", "height", "weight", "port", "budget", "timeout", "version", "shoe size"}
)
_NAMED = lazy_pattern(r"(?:an? )?(?:(?i:dr|mr|mrs|ms|prof)\.? )?\s*[A-Z0-9]")
_NUMBERED = lazy_pattern(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred)\b", I
)
_NOT_PLACES: Final = frozenset({"boss", "partner", "doctor", "dentist", "landlord", "car", "phone model"})
_PLACE = lazy_pattern(r"[A-Z]|(?:the |an? )?(?:room|building|floor|hall|office)")
_VALUES: Final = {
    "email": lazy_pattern(".*@"),
    "phone": lazy_pattern(r"(?:\D*\d){3}"),
    "phone model": lazy_pattern(".*[A-Z]"),
    "car": lazy_pattern(".*[A-Z]"),
    "birthday": lazy_pattern(rf".*(?:{_HARD_VALUE.pattern})", I),
    "diet": lazy_pattern(f".*{DIETS}", I),
    "job": lazy_pattern(f".*{PROFESSIONS}", I),
    "address": lazy_pattern(".*[A-Z0-9]"),
    **dict.fromkeys(_NUMBERED_RELATIONS, lazy_pattern(rf".*(?:{_NUMBERED.pattern})", I)),
    **dict.fromkeys(_NAMED_RELATIONS, _NAMED),
}
"""The form of the values of a relation."""


def _fits(relation: str, value: str, called: str) -> bool:
    """Return True if a value is of the kind that the relation has: "my boss is nice" names no boss."""
    is_place = called in {"at", "in", "on"}
    if pattern := _VALUES.get(relation):
        if is_place and relation in _NOT_PLACES:
            return False
        return called in {"called", "named"} or pattern.match(value) is not None
    return not is_place or _HARD_VALUE.search(value) is not None or _PLACE.match(value) is not None


_NOUN_WORDS_TEXT = """
    is are will has have become became becomes takes take happens meets comes starts begins opens closes ends leaves
    departs cost costs runs expires arrives listens belongs uses equals remains was were got been being moved
    changed pushed postponed rescheduled switched updated raised increased lowered reduced extended renamed
    bumped shifted delayed upgraded downgraded migrated replaced set brought went rose dropped fell grew
    relocated cut reset reassigned
"""
_NOUN_WORDS: Final = frozenset(_NOUN_WORDS_TEXT.split())
_OTHER_VERB_WORDS_TEXT = """
    delay postpone reschedule move push change raise lower i'm i've we're we've don't doesn't isn't aren't
    what's that's it's
"""
_VERB_WORDS: Final = _NOUN_WORDS | set(_BY_FIRST) | frozenset(_OTHER_VERB_WORDS_TEXT.split())
_NO_FIRST_TEXT = """
    i we you he she it they this that there here these those what who where how everyone everything someone
    something nothing one which all some most people life being so today tomorrow yesterday it's that's there's
    he's she's thanks glad wow yeah sounds
"""
_NO_FIRST: Final = frozenset(_NO_FIRST_TEXT.split())
