"""Statements and questions in German."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from core.patterns import lazy_pattern
from store.text.slot_words import RELATIONS
from store.text.slots import (
    GROUP,
    PERSONAL,
    SPEAKER,
    USES,
    Signal,
    Slot,
    Statement,
    compiled,
    is_single,
    owner_of,
    relation_of_tool,
    relation_of_use,
    slots_of_question,
)

I = re.IGNORECASE  # noqa: E741

_DOUBT: Final = lazy_pattern(
    r"\b(?:wenn|falls|würde\w*|könnte\w*|hätte\w*|wäre\w*|vielleicht|eventuell|möglicherweise|hoffe\w*"
    r"|hoffentlich|plane\w*|will|wollen|wollte\w*|möchte\w*|überlege\w*"
    r"|fast|beinahe|sollte\w*|früher|damals|einst|ehemals|vor \d+ jahren|vor (?:zwei|drei|vier|fünf|vielen"
    r"|einigen) jahren|als (?:ich|wir|kind)|wurde gesagt|angeblich|träum\w+"
    r"|stell dir vor|angenommen|werde|werden wir|nächstes jahr|irgendwann|nie|niemals|sagte|sagt|meinte|gehört"
    r"|gelesen|ursprünglich|anfangs|zunächst|bevor|bis (?:20|letzte)\w*|denke daran|nachgedacht|spiele mit dem"
    r" gedanken|in (?:19|200|201)\d)\b",
    I,
)
_FICTION: Final = lazy_pattern(
    (
        r"\b(?:scherz|witz|(?:ha){2,}|lol|rollenspiel|spiel\w* (?:eine?|die) rolle|stell dir vor|tu so|übersetze|roman"
        r"|gedicht|zitat|beispielsatz|schreib\w* (?:eine?n?|mir))\b"
    ),
    I,
)
_LEAD: Final = lazy_pattern(
    r"^(?:(?:hallo|hi|hey|also|übrigens|update|zur info|info|kurze? (?:info|update)|bitte (?:merken|merke dir)"
    r"|merk dir|notiz|korrektur|achtung|ach ja|ja|nein|eigentlich|und|aber"
    r"|gute nachrichten?)\b[\s,:!.\u2013-]*)+",
    I,
)
_TIME_LEAD: Final = lazy_pattern(
    r"^(?P<lead>(?:jetzt|nun|inzwischen|mittlerweile|seit (?:kurzem|gestern|heute|letzte[mnr]? \w+|dieser \w+"
    r"|\w+)|ab (?:sofort|jetzt|heute|morgen|nächste[mnr]? \w+|\w+)|letzte[nrs]? (?:woche|monat|jahr|\w+tag)"
    r"|diese[nrs]? (?:woche|monat|jahr)|vor (?:kurzem|einer woche|zwei wochen|einem monat|ein paar \w+)|gestern"
    r"|heute|kürzlich|neulich|momentan|aktuell|derzeit|endlich))\s+"
    r"(?P<verb>\w+)\s+(?P<subject>ich|wir|der nutzer|die nutzerin|(?:mein|unser|der|die|das)\w*\s+[\w-]+)\s*"
    r"(?P<rest>.*)$",
    I,
)
_SIGNAL: Final = lazy_pattern(
    (
        r"\b(?:jetzt|nun|inzwischen|mittlerweile|seit (?:kurzem|gestern|heute|letzte\w*|diese\w*)|ab (?:sofort|jetzt"
        r"|heute|morgen|nächste\w*)|nicht mehr|kein\w* mehr|statt(?:dessen)?|neu|neuerdings|aktuell|derzeit|kürzlich"
        r"|neulich|geändert|korrektur|update)\b"
    ),
    I,
)
_FILL: Final = lazy_pattern(
    (
        r"\b(?:jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit|momentan|neuerdings|seit (?:kurzem|gestern|heute"
        r"|letzte[mnr]? \w+|diese[mnr]? \w+|\w+)|ab (?:sofort|jetzt|heute|morgen|nächste[mnr]? \w+)|kürzlich|neulich"
        r"|letzte[nrs]? (?:woche|monat|jahr|\w+tag)|vor (?:kurzem|zwei wochen|einem monat|einer woche)|endlich"
        r"|bereits|schon|gerade|immer|noch|auch|leider|wieder|offiziell|dauerhaft|heute|gestern|übrigens|statt"
        r" \w+)\s*"
    ),
    I,
)
_INSTEAD: Final = lazy_pattern(r"\b(?:statt|anstatt|anstelle von)\s+(?:(?:um|am|im)\s+)?(?P<old>[^,;]+?)\s*$", I)
_SUBJECT: Final = lazy_pattern(
    r"^(?:(?P<me>ich|der nutzer|die nutzerin|der benutzer)|(?P<us>wir|das team)|(?P<other>mein\w* \w+(?:"
    r" [A-ZÄÖÜ]\w+)?|[A-ZÄÖÜ]\w+))\s+"
    r"(?=wohn|leb|arbeit|fahr|nutz|verwend|benutz|bin|sind|ist|hab|hat|heiß|zieh|zog|besitz|wieg|zahl|verdien|ess"
    r"|studier|trainier|geh|wechsel|setz|steh|nehm|programmier|schreib|muss|musst|heirat|kündig)",
    I,
)
_rules = partial(compiled, flags=I)
_VERBS: Final = _rules(
        (r"(?:wohne[nt]?|wohnt|lebe[nt]?|lebt) nicht mehr (?:in|bei|am) (?P<gone>.+)", "home", "negation"),
        (r"(?:wohne[nt]?|wohnt|lebe[nt]?|lebt) (?:in der |im |am |an der )(?P<new>.+\d\w*)", "address", ""),
        ((
            r"(?:wohne[nt]?|wohnt|lebe[nt]?|lebt) (?:zur miete |zusammen |allein )?(?:in|im|am|bei|auf) (?P<new>.+)"
        ), "home", ""),
        ((
            r"(?:bin|sind|ist) (?:von (?P<old>.+?) )?(?:nach|in die|in den|ins?) (?P<new>.+?) (?:um|weg)?(?:gezogen"
            r"|übergesiedelt)"
        ), "home", "change"),
        (r"(?:bin|sind|ist) aus (?P<gone>.+?) (?:weggezogen|ausgezogen|fortgezogen)", "home", "negation"),
        ((
            r"(?:arbeite[nt]?|arbeitet|bin|ist) nicht mehr (?:bei|für) (?P<gone>.+?)(?: angestellt| beschäftigt)?"
        ), "employer", "negation"),
        (r"(?:arbeite[nt]?|arbeitet|bin|ist) nicht mehr als (?P<gone>.+)", "job", "negation"),
        (r"(?:arbeite[nt]?|arbeitet) als (?P<role>.+?)(?: (?:bei|für) (?P<new>.+))?", "job", ""),
        ((
            r"(?:arbeite[nt]?|arbeitet|bin|ist) (?:bei|für) (?:der |dem |die )?(?P<new>[A-ZÄÖÜ].*?)(?: angestellt|"
            r" beschäftigt)?"
        ), "employer", ""),
        (r"(?:bin|ist|sind) (?:von (?P<old>.+?) )?zu[rm]? (?P<new>.+?) gewechselt", "employer", "change"),
        (r"(?:habe|hat|haben) geheiratet", "marital status", "change"),
        ((
            r"(?:mussten?|habe|haben|hat) (?P<noun>(?:unser|mein|der|die|das|den)\w* .+?) (?:von (?P<old>.+?) )?"
            r"(?:auf|nach|zu|in) (?P<new>.+?) (?:verschieben|verlegen|ändern|vorziehen|umstellen)"
        ), "", "change"),
        ((
            r"(?:habe|haben) (?:einen?|ein|eine) (?P<noun>neue\w* [\w-]+),? (?P<new>(?:Dr |Herr |Frau )?[A-ZÄÖÜ].*)"
        ), "", "change"),
        ((
            r"habe?n? (?:meinen |den )?(?:job|arbeitgeber) gewechselt(?: und (?:arbeite|bin) (?:jetzt |nun )?(?:bei"
            r"|für) (?P<new>.+))?"
        ), "employer", "change"),
        ((
            r"(?:habe|hat) (?:meinen job|meine stelle|den job|die stelle)(?: (?:bei|als) (?P<gone>.+?))? (?:gekündigt"
            r"|verloren|aufgegeben)"
        ), "employer", "negation"),
        (r"(?:habe|hat) (?:bei|in) (?P<gone>.+?) gekündigt", "employer", "negation"),
        ((
            r"(?:habe|hat) (?:eine neue stelle|einen neuen job|eine stelle) (?:bei|als) (?P<new>.+?)(?: angefangen|"
            r" angenommen| begonnen)?"
        ), "employer", "change"),
        (r"(?:habe|hat) (?:bei) (?P<new>.+?) angefangen", "employer", "change"),
        ((
            r"(?:bin|ist) (?P<role>[A-ZÄÖÜ]\w*(?:ingenieur|lehrer|arzt|ärztin|entwickler|koch|köchin|pfleger|anwalt"
            r"|anwältin|berater|leiter|techniker|designer|verkäufer|student|bäcker|mechaniker|fahrer|schwester"
            r"|architekt)(?:in)?)(?: (?:bei|in) (?P<new>.+))?(?: geworden)?"
        ), "job", ""),
        (r"(?:bin|ist) (?:in rente|pensioniert|im ruhestand)(?: gegangen)?", "job", "change"),
        (r"(?:bin|ist|sind) (?P<new>\d{1,3})(?: jahre?(?: alt)?)?(?: geworden)?", "age", ""),
        (r"(?:wiege|wiegt) (?P<new>\d.*)", "weight", ""), (r"(?:bin|ist) (?P<new>\d.*?) groß", "height", ""),
        (r"fahre?[nt]?(?:ährt)? (?:keinen?|nicht mehr) (?P<gone>.+?)(?: mehr)?", "car", "negation"),
        (r"(?:fahre|fahren|fährt) (?:einen?|den|das) (?P<new>.+)", "car", ""),
        ((
            r"(?:fahre|fahren|fährt) (?P<new>(?!Auto|Bus|Bahn|Rad|Fahrrad|Ski|Zug|Motorrad|Taxi|U-Bahn|Richtung|Boot"
            r"|Kanu)(?-i:[A-ZÄÖÜ])\w+)"
        ), "car", ""),
        ((
            r"(?:habe|haben|hat) (?:meinen?|unseren?|den|das|mein|unser) (?:alten )?(?P<old>.+?) verkauft und (?:mir"
            r" )?(?:einen?|ein) (?:neuen |neues )?(?P<new>.+?) gekauft"
        ), "car", "change"),
        ((
            r"(?:habe|haben|hat) (?:mir |uns )?(?:einen?|ein) (?:neuen |neues )(?:auto|wagen),? (?:einen?|ein) "
            r"(?P<new>.+?)(?:,? gekauft)?"
        ), "car", "change"),
        ((
            r"(?:habe|haben|hat) (?:mir |uns )?(?:einen?|ein) (?:neuen |neues )(?P<new>[A-ZÄÖÜ]\w+) gekauft"
        ), "car", "change"),
        ((
            r"(?:bin|ist|sind) (?:kein\w*|nicht) (?P<gone>vegetarier\w*|veganer\w*|vegetarisch|vegan) mehr|(?:bin"
            r"|ist) nicht mehr (?P<gone2>vegetarier\w*|veganer\w*|vegetarisch|vegan)"
        ), "diet", "negation"),
        ((
            r"(?:bin|ist|sind|esse|ernähre mich) (?P<new>vegetarier\w*|veganer\w*|vegetarisch|vegan|pescetarier\w*"
            r"|flexitarier\w*)(?: geworden)?"
        ), "diet", ""),
        (r"(?:esse|isst|essen) (?:kein|keinen) (?P<new>fleisch|fisch) mehr", "diet", "change"),
        (r"(?:esse|isst|essen) (?:wieder )?(?P<gone>fleisch|fisch)", "diet", "change"),
        (r"(?:bin|ist) (?:mit) (?P<new>.+?) (?:verheiratet|verlobt|zusammen|liiert)", "partner", ""),
        (r"(?:habe|hat) (?P<new>[A-ZÄÖÜ]\w+) geheiratet", "partner", "change"),
        ((
            r"(?:habe|hat) mich von (?P<gone>.+?) getrennt|(?:bin|ist) von (?P<gone2>.+?) geschieden"
        ), "partner", "negation"),
        (r"(?:bin|ist) (?P<new>single|verheiratet|geschieden|verlobt|ledig)", "marital status", ""),
        ((
            r"(?:sind|bin|ist) (?:komplett |ganz )?von (?P<old>.+?) (?:auf|zu|nach) (?P<new>.+?) (?:umgestiegen"
            r"|gewechselt|migriert|umgezogen|gegangen)"
        ), USES, "change"),
        (r"(?:sind|bin|ist) (?:auf|zu) (?P<new>.+?) (?:umgestiegen|gewechselt|migriert)", USES, "change"),
        (r"(?:haben|habe|hat) (?P<old>.+?) durch (?P<new>.+?) ersetzt", USES, "change"),
        ((
            r"(?:haben|habe|hat) (?P<noun>(?:unser|mein|der|die|das|den)\w* .+?) (?:von (?P<old>.+?) )?(?:auf|nach|zu"
            r"|in) (?P<new>.+?) (?:verschoben|geändert|verlegt|umgestellt|umgezogen|erhöht|gesenkt|gesetzt|migriert"
            r"|aktualisiert|umbenannt|vorgezogen)"
        ), "", "change"),
        ((
            r"(?:nutze|nutzen|nutzt|verwende|verwenden|verwendet|benutze|benutzen|benutzt) (?P<gone>.+?) nicht mehr|"
            r"(?:nutze|nutzen|verwende|verwenden|benutze|benutzen) kein\w* (?P<gone2>.+?) mehr"
        ), USES, "negation"),
        ((
            r"(?:nutze|nutzen|nutzt|verwende|verwenden|verwendet|benutze|benutzen|benutzt|programmiere (?:in|mit)"
            r"|programmieren (?:in|mit)|schreibe in|setzen auf) (?P<new>.+?)(?: (?P<what>(?:für|als|in|im|zum) .+))?"
        ), USES, ""),
        ((
            r"(?:zahle|zahlen|zahlt) (?P<new>\d.*?) miete|(?:zahle|zahlen|zahlt) (?P<new2>\d.*?) (?:für die|an) "
            r"(?:miete|wohnung)"
        ), "rent", ""),
        (r"(?:verdiene|verdient) (?P<new>\d.*)", "salary", ""),
        (r"(?:trainiere|trainiert) (?:bei|im) (?P<new>.+)", "gym", ""), ((
            r"(?:studiere|studiert) (?:.+ )?(?:an der|in) (?P<new>.+)"
        ), "school", ""),
        (r"(?:bin|ist|sind) bei (?P<new>.+?) versichert", "insurance", ""), ((
            r"(?:bin|ist|sind) bei (?P<new>.+? (?:bank|sparkasse))"
        ), "bank", ""),
        (r"(?:stehe|steht) (?P<new>um .+?) auf", "aufstehen", ""),
        ((
            r"(?:habe|haben) (?:einen?|ein|eine) (?P<noun>neue\w* .+?)(?:,? (?:er|sie|es) (?:ist|heißt|lautet)|:) "
            r"(?P<new>.+)"
        ), "", "change"),
        (r"heiße (?P<new>[A-ZÄÖÜ].+)", "name", ""),
)  # fmt: skip
_CHANGED = (
    r"(?:verschoben|geändert|verlegt|umgestellt|umgezogen|erhöht|gesenkt|gesetzt|migriert|aktualisiert|umbenannt"
    r"|vorgezogen|gewechselt|gestiegen|gesunken|verlängert|angehoben|ersetzt)"
)
_NOUN: Final = lazy_pattern(
    r"^(?P<noun>(?:(?:mein|unser|der|die|das|den)\w*\s+)?(?:[\w/-]+\s+){0,5}?[\w/-]+?)\s+"
    r"(?:(?:ist|sind) (?:nicht mehr|kein\w*) (?P<gone>.+?)(?: mehr)?"
    r"|(?:ist|sind|wurde|wurden|wird) (?:von (?P<old>.+?) )?(?:auf|nach|zu|in|durch|um) (?P<to>.+?) "
    + _CHANGED
    + (
        r"|(?P<be>ist|sind|heißt|lautet|lauten|beträgt|findet|beginnt|startet|endet|öffnet|schließt|kostet|läuft auf"
        r"|läuft|liegt bei|steht auf)\s+(?P<prep>(?:am|um|im|in|auf|bei)\s+)?(?P<value>.+?)(?:\s+statt)?)$"
    ),
    I,
)
_NO_NOUN: Final = lazy_pattern(
    (
        r"^(?:ich|wir|du|er|sie|es|das|dies\w*|was|wer|wo|wie|hier|da|dort|alles|jemand|man|heute|morgen|so)\b$|\b"
        r"(?:ich|du|er|es|ist|war|habe|hat|dass|weil)\b"
    ),
    I,
)
_OLD: Final = lazy_pattern(
    (
        r"^(?:\w+\s+)?(?:alte[nrs]?|frühere[nrs]?|ehemalige[nrs]?|vorige[nrs]?|letzte[nrs]?|erste[nrs]?|nächste[nrs]?"
        r"|zweite[nrs]?|ex)[\s-]"
    ),
    I,
)
_BAD_VALUE: Final = lazy_pattern(
    (
        r"^(?:sehr|so|zu|nicht|kein\w*|toll|gut|schlecht|schön|super|nett|echt|wirklich|ganz|ziemlich|eine?[nrsm]? "
        r"(?:gut|toll|schön|groß|klein)\w*|mein|dein|was|wie|dass|wichtig|schwer|leicht|kaputt|weg|da|hier)\b"
    ),
    I,
)
_HARD: Final = lazy_pattern(
    (
        r"\d|\b(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|mittag|mitternacht|januar|februar|märz|april|juni"
        r"|juli|august|september|oktober|november|dezember"
    ),
    I,
)
_NAMED: Final = frozenset(
    {
        "boss",
        "partner",
        "doctor",
        "dentist",
        "landlord",
        "name",
        "employer",
        "bank",
        "gym",
        "insurance",
        "school",
        "home",
    }
)


def is_doubtful(sentence: str) -> bool:
    """Return True if a sentence plans, wishes, supposes or tells of the past."""
    return _DOUBT.search(sentence) is not None


def is_fiction(text: str) -> bool:
    """Return True if a text jokes, plays a role or speaks about texts."""
    return _FICTION.search(text) is not None


def statements(sentence: str) -> Iterator[Statement]:
    """Yield what one sentence says of slots."""
    subject = ""
    for part in re.split(
        (
            r"\s*[,;]?\s+(?:und|aber)\s+(?=(?:jetzt |nun )?(?:ich|wir|mein|unser|arbeite|wohne|lebe|fahre"
            r"|nutze)\w*\b)|,\s+(?=(?:ich|wir|mein|unser)\w*\b)|;\s+"
        ),
        sentence,
        flags=I,
    ):
        clause = part.strip(" ,.!:")
        if match := _LEAD.match(clause):
            clause = clause[match.end() :]
        signal: Signal = ""
        if match := _TIME_LEAD.match(clause):
            clause, signal = f"{match['subject']} {match['verb']} {match['rest']}".strip(), "change"
        for statement in _of_clause(clause, subject, signal):
            subject = statement.subject
            yield statement


def _of_clause(clause: str, previous: str, signal: Signal) -> Iterator[Statement]:
    signal = "change" if signal or _SIGNAL.search(clause) else ""
    replaces = ""
    if match := _INSTEAD.search(clause):
        replaces, clause, signal = match["old"], clause[: match.start()].strip(), "change"
    plain = re.sub(r"\s+", " ", _FILL.sub("", clause)).strip()
    if match := _SUBJECT.match(plain):
        subject = SPEAKER if match["me"] else GROUP if match["us"] else _name_of(match["other"])
        if found := _of_verb(subject, plain[match.end() :], signal, replaces):
            yield from found
            return
    elif previous and (found := _of_verb(previous, plain, signal, replaces)):
        yield from found
        return
    match = _LABEL.match(plain)
    slot = noun_slot(match["noun"]) if match else None
    if match and slot and (signal or match["new"] or is_single(slot.relation)):
        yield Statement(*slot, _cut(match["value"]), "change" if signal or match["new"] or match["changed"] else "")
        return
    yield from _of_noun(plain, signal, replaces)


_LABEL: Final = lazy_pattern(
    (
        r"^(?P<new>neue[rs]? )?(?P<noun>(?:(?:mein|unser|der|die|das)\w* )?[\w-]+)(?P<changed> (?:hat|haben) sich"
        r" geändert| wurde geändert)?: (?P<value>\S.*)$"
    ),
    I,
)


def _name_of(words: str) -> str:
    return re.sub(r"^(?:mein|unser|der|die|das)\w*\s+", "", words.lower())


def _of_verb(subject: str, rest: str, signal: Signal, replaces: str) -> list[Statement]:
    for pattern, relation, own in _VERBS:
        if match := pattern.fullmatch(rest):
            groups = {name.rstrip("2"): value.strip(" .,!") for name, value in match.groupdict().items() if value}
            return _from_groups(groups, subject, relation, own or signal, replaces)
    return []


def _from_groups(groups: dict[str, str], subject: str, relation: str, signal: Signal, replaces: str) -> list[Statement]:
    old, new = groups.get("old", replaces), _cut(groups.get("new", ""))
    if signal == "negation":
        gone = groups.get("gone", "")
        relation = relation_of_tool(gone) if relation == USES else relation
        return [Statement(relation, owner_of(subject, relation), gone, "negation")]
    if noun := groups.get("noun"):
        slot = noun_slot(f"mein {noun}" if noun.startswith("neue") and subject == SPEAKER else noun)
        return [Statement(*slot, new, "change", old)] if slot and new else []
    if relation in {"job", "employer"}:
        return list(_of_work(groups, subject, signal, new, old))
    if relation == USES:
        relation = relation_of_use(new, old, groups.get("what", "").lower())
    value = new or groups.get("gone", "") or ("verheiratet" if relation == "marital status" else "")
    return [Statement(relation, owner_of(subject, relation), value, signal, old)] if value else []


def _of_work(groups: dict[str, str], subject: str, signal: Signal, value: str, old: str) -> Iterator[Statement]:
    """Yield the job and the employer of "ich arbeite als Koch bei Lidl". Banks and insurers are left likewise."""
    if role := groups.get("role"):
        yield Statement("job", subject, role, signal)
    elif not value:
        yield Statement("job", subject, "in rente", signal)
    if value:
        yield Statement("employer", subject, value, signal, old)
    if old and signal == "change":
        yield Statement(USES, subject, value, signal, old)


def _cut(value: str) -> str:
    value = re.split(r"(?<!\d)[,;](?!\d)|\s(?:weil|da|wo|der|die|das|seit|und ich)\s", value)[0]
    return re.sub(r"^(?:der|die|das|den|dem|eine?[nrsm]?)\s+", "", value.strip(" .,!\"'„“"))[:60]


def _of_noun(clause: str, signal: Signal, replaces: str) -> Iterator[Statement]:
    match = _NOUN.match(clause)
    if not match or _NO_NOUN.search(match["noun"]) or _OLD.match(match["noun"]):
        return
    slot = noun_slot(match["noun"])
    if slot is None:
        return
    if re.search(r"\bneue[nrs]?\b", match["noun"], I):
        signal = "change"
    if match["to"]:
        yield Statement(*slot, _cut(match["to"]), "change", match["old"] or replaces)
    elif match["gone"] and re.search(r"mehr\b", clause):
        yield Statement(*slot, match["gone"], "negation")
    elif match["value"] and (value := _value_of(match, slot, signal)):
        yield Statement(*slot, value, signal, replaces)


def _value_of(match: re.Match[str], slot: Slot, signal: Signal) -> str:
    """Return the value that a clause with "ist" says of a noun; empty for "mein Chef ist im Urlaub"."""
    verb, prep = match["be"].lower(), (match["prep"] or "").strip().lower()
    value = re.sub(r"\s+statt$", "", _cut(match["value"]))
    if verb == "findet":
        value = re.sub(r"^(?:am|um|im)\s+", "", value)
    is_hard = _HARD.search(value) is not None
    is_known = slot.relation in RELATIONS.values()
    is_person = slot.relation in _NAMED - _PLACES
    is_wrong = (
        not value
        or _BAD_VALUE.match(value) is not None
        or (slot.relation in _NAMED and not (value[:1].isupper() or verb == "heißt"))
        or (is_person and prep != "")
        or (prep in {"in", "im", "auf", "bei"} and not (is_hard or is_known))
        or not (_OWNED.match(match["noun"]) or signal or is_hard)
    )
    return "" if is_wrong else f"um {value}" if prep == "um" else value


_PLACES: Final = frozenset({"employer", "bank", "gym", "insurance", "school", "home"})
_OWNED: Final = lazy_pattern(r"mein|unser|der|die|das", I)


def noun_slot(words: str) -> Slot | None:
    """Return the slot that a noun phrase names: "der Name meines Chefs" is the boss of the speaker; None for none."""
    words = re.sub(r"^(?:der )?name (?=mein|unser)", "", re.sub(r"\s+", " ", words.strip(" .,!?\"'")), flags=I)
    words, word = _ADJECTIVE.sub("", words), ""
    if match := _DETERMINER.match(words):
        word, words = match["word"].lower(), words[match.end() :]
    if match := _OF.match(words):
        owner = match["owner"].lower()
        is_name = match["thing"].lower() == "name"
        return Slot(_relation(owner), SPEAKER) if is_name else Slot(_relation(match["thing"]), owner)
    relation = _relation(words)
    if word in {"ein", "dein"} or not relation:
        return None
    personal = {"unser": PERSONAL, "der": _HOUSEHOLD, "die": _HOUSEHOLD, "das": _HOUSEHOLD}.get(word, frozenset())
    return Slot(relation, SPEAKER if word == "mein" or relation in personal else GROUP)


_HOUSEHOLD: Final = frozenset({"rent", "landlord", "wifi password", "gate code"})
_DETERMINER: Final = lazy_pattern(r"(?P<word>mein|unser|der|die|das|den|dem|des|ein|dein)(?:e[nrsm]?|s)?\s+", I)
_ADJECTIVE: Final = lazy_pattern(
    r"\b(?:neue|aktuelle|alte|frühere|vorherige|ehemalige|ursprüngliche|erste|letzte|jetzige)[nrsm]?\s+", I
)
_OF: Final = lazy_pattern(
    r"(?P<thing>[\w-]+) (?:mein|unser|des|der|von)(?:e[nrsm]?|s)? (?:(?:mein|unser)\w* )?(?P<owner>[\w -]+)$", I
)


def _relation(words: str) -> str:
    folded = words.lower()
    return RELATIONS.get(folded) or RELATIONS.get(folded.removesuffix("s")) or folded


_ASK_FILLER: Final = lazy_pattern(
    (
        r"\b(?:jetzt|nun|aktuell|derzeit|momentan|zurzeit|heute|noch|früher|vorher|zuvor|damals|ursprünglich|zuerst"
        r"|anfangs|einmal|eigentlich|nochmal|denn|gerade|mittlerweile|inzwischen|bitte)\b"
    ),
    I,
)
_W = r"(?P<s>ich|wir|der nutzer|mein\w* [\w ]+?|unser\w* [\w ]+?|[A-ZÄÖÜ]\w+)"
_QUESTIONS: Final = tuple(
    (lazy_pattern("^" + pattern, I), relations.split("|"))
    for pattern, relations in (
        ((
            rf"(?:wo|in welche[rmn] (?:stadt|land|ort)) (?:wohne?|lebe?|wohnst|wohnen|leben|habe?n?|hat|wohnte|lebte"
            rf"|wohnt|lebt)\w* {_W}(?: (?:gewohnt|gelebt))?$"
        ), "home|address"),
        (rf"wohin (?:bin|ist|sind) {_W} (?:um)?gezogen", "home|address"),
        ((
            rf"(?:wo|bei wem|für wen|bei welche[rm] (?:firma|unternehmen)|für welche (?:firma|unternehmen)) "
            rf"(?:arbeit\w*|habe?n?|hat) {_W}(?: gearbeitet)?$"
        ), "employer|job"),
        ((
            r"(?:als was|was) (?:arbeit\w*|bin|ist) (?P<s>ich|wir|[A-ZÄÖÜ]\w+)(?: von beruf)?$|was (?:mache?|macht) "
            r"(?P<s2>\w+) beruflich"
        ), "job|employer"),
        (rf"wie alt (?:bin|ist|sind|war) {_W}$", "age"), (rf"wie groß (?:bin|ist) {_W}$", "height"), ((
            rf"wie schwer (?:bin|ist) {_W}$|wie viel wiege? {_W.replace('<s>', '<s2>')}$"
        ), "weight"),
        ((
            rf"(?:was für ein|welches|welchen) (?:auto|wagen) (?:fahre?n?|fährt|habe?n?|hat|besitze?|fuhr) {_W}(?:"
            rf" gefahren)?$|was fahre? (?P<s2>ich|wir)$"
        ), "car"),
        (rf"(?:bin|ist|esse) {_W} (?:ein\w* )?(?:vegetarier|veganer|vegetarisch|vegan|fleisch)", "diet"),
        (rf"mit wem (?:bin|ist|war) {_W} (?:verheiratet|zusammen|verlobt|liiert)", "partner"),
        (rf"(?:bei wem|wo) (?:bin|ist|war) {_W} (?:kranken)?versichert", "insurance"),
        ((
            rf"wie viel (?:miete )?(?:zahle?n?|zahlt) {_W}(?: miete| für die miete)?$"
        ), "rent"), (rf"wie viel verdien\w* {_W}", "salary"),
        (rf"(?:wo|in welchem fitnessstudio) trainier\w* {_W}", "gym"), (rf"wo studier\w* {_W}", "school"),
        (rf"(?:wann|um wie viel uhr) stehe? {_W} auf", "aufstehen"),
    )
)  # fmt: skip
_ASK_TOOL: Final = lazy_pattern(
    (
        rf"^welche[nrsm]? (?P<kind>[\w /-]+?) (?:nutz\w*|verwend\w*|benutz\w*|haben|habe) {_W}(?P<what> (?:für|in|im"
        rf"|als|zum) .+?)?(?: (?:genutzt|verwendet|benutzt))?$"
    ),
    I,
)
_ASK_USE: Final = lazy_pattern(
    rf"^(?:was|womit) (?:nutz\w*|verwend\w*|benutz\w*) {_W}(?P<what> (?:für|in|als|zum) .+)?$", I
)
_ASK_NOUN: Final = lazy_pattern(
    (
        r"^(?:wie (?:viel |hoch |groß |lange? )?|was|wer|wann|wo|welche[rsn]?(?: \w+)?|an welchem tag|um wie viel uhr"
        r"|wie viel uhr)\s*(?:ist|sind|war|waren|heißt|hieß|lautet|lautete|findet|beginnt|fand|startet|beträgt|betrug"
        r"|kostet|kostete|liegt)\s+(?P<noun>.+?)(?:\s+(?:statt|angesetzt|geplant|an))?$|^(?P<plain>mein\w* .+)$"
    ),
    I,
)


def asked(question: str) -> Iterator[Slot]:
    """Yield the slots that a question asks for."""
    words = _SINCE.sub("", question.strip().rstrip("?!. "))
    words = re.sub(r"\s+", " ", _ASK_FILLER.sub(" ", words)).strip(" ,")
    for rule in (_by_relation, _by_tool, _by_noun):
        if found := list(rule(words)):
            yield from found
            return


_SINCE: Final = lazy_pattern(r",?\s*\bbevor\b.*$|\bvor (?:dem |der )?(?:umzug|wechsel|\w+)$", I)


def _by_relation(words: str) -> Iterator[Slot]:
    for pattern, relations in _QUESTIONS:
        if match := pattern.match(words):
            who = next((value for value in match.groupdict().values() if value), "ich")
            for relation in relations:
                yield Slot(relation, _asked_subject(who, relation))
            return


def _by_tool(words: str) -> Iterator[Slot]:
    if match := _ASK_TOOL.match(words) or _ASK_USE.match(words):
        kind = _relation(match.groupdict().get("kind") or "")
        what = (match["what"] or "").strip().lower()
        for relation in filter(None, [kind, USES, what and f"{USES} {what}"]):
            yield Slot(relation, _asked_subject(match["s"], kind))


def _by_noun(words: str) -> Iterator[Slot]:
    if (match := _ASK_NOUN.match(words)) and (slot := noun_slot(match["noun"] or match["plain"])):
        yield from slots_of_question(slot)


def _asked_subject(who: str, relation: str) -> str:
    folded = who.lower()
    if folded in {"ich", "der nutzer"}:
        return SPEAKER
    if folded == "wir":
        return SPEAKER if relation in PERSONAL else GROUP
    return _name_of(who)


_PAST: Final = lazy_pattern(
    (
        r"\b(?:früher\w*|vorher\w*|zuvor|damals|ursprünglich\w*|zuerst|anfangs|ehemalig\w*|alte[nrsm]?(?= )|vorige\w*"
        r"|bevor|habe ich \w* ?(?:gewohnt|gearbeitet|gelebt)|hieß|war(?:en)? (?:mein|unser|der|die|das)\w*|wohnte"
        r"|arbeitete|lebte|fuhr|lautete|nutzten|verwendeten|erste[nrs]?)\b"
    ),
    I,
)


def is_about_past(question: str) -> bool:
    """Return True if a question asks for what was, not for what is."""
    return _PAST.search(question) is not None
