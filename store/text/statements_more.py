"""Statements and questions in Spanish, French, Portuguese, Italian, Dutch and Japanese: the commonest forms only."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from core.lazy import lazy_pattern
from store.text.slots import (
    GROUP,
    PLAIN_KINDS,
    SPEAKER,
    USES,
    Signal,
    Slot,
    Statement,
    compiled,
    is_single,
    kinds_of,
    relation_of_use,
)

I = re.IGNORECASE  # noqa: E741


class _Language(NamedTuple):
    """Alternatives of a pattern. `change` are the verbs of "was moved to"; `live` to `use` begin predicates of "I"."""

    mine: str
    ours: str
    be: str
    now: str
    new: str
    change: str
    live: str
    moved: str
    work: str
    use: str
    switched: str
    doubt: str
    past: str
    where_home: str
    where_work: str
    asks: str


LANGUAGES: Final = {
    "es": _Language(
        mine="mi|mis", ours="nuestr[oa]s?|el|la|los|las", be="es|son|está en|se llama|queda en|cuesta|está",
        now="ahora|actualmente|ya|desde hoy|a partir de (?:hoy|ahora|mañana)", new="nuev[oa]s?|actual",
        change=(
            r"(?:se )?(?:cambió|movió|pasó|pospuso|trasladó|ha cambiado|ha pasado|subió|bajó|aumentó|aplazó|retrasó"
            r"|adelantó)(?: del? .+?)? (?:a|al|para|hasta) (?:la |el |los )?"
        ),
        live="vivo en|vivimos en|resido en", moved=(
            r"(?:me mudé|nos mudamos|me he mudado|nos hemos mudado)(?: de (?P<old>.+?))? a"
        ),
        work="trabajo (?:en|para)|trabajamos en", use="uso|usamos|utilizo|utilizamos",
        switched=r"(?:cambié|cambiamos|migramos|pasamos|pasé|hemos migrado|hemos pasado)(?: de (?P<old>.+?))? a",
        doubt=(
            "si|quiero|quisiera|quizás?|tal vez|espero|pienso|planeo|podría|antes|cuando|solía|ojalá|casi|dijo|voy a"
            "|vamos a|nunca|no"
        ),
        past="antes|anterior|antigu[oa]|primer[oa]?|originalmente|previo|previa|era|vivía|trabajaba|usábamos|solía",
        where_home="¿?d[oó]nde vivo|¿?en qué ciudad vivo|¿?d[oó]nde vivía", where_work=(
            "¿?d[oó]nde trabajo|¿?para quién trabajo|¿?d[oó]nde trabajaba"
        ),
        asks=(
            "¿?(?:cuál|cuáles|qué|quién|cómo|dónde|cuándo|cuánto|a qué hora|qué día) (?:es|son|está|se llama|era"
            "|queda|cuesta)"
        ),
    ),
    "fr": _Language(
        mine="mon|ma|mes", ours="notre|nos|le|la|les|l'", be="est|sont|s'appelle|coûte|se trouve à",
        now="maintenant|désormais|actuellement|à présent", new="nouveau|nouvel|nouvelle|nouveaux|nouvelles|actuelle?",
        change=(
            r"(?:a été |est |ont été |a )?(?:déplacée?|reportée?|passée?|changée?|repoussée?|décalée?|augmentée?"
            r"|baissée?|avancée?|changé|passé|augmenté|baissé)(?: d[eu] .+?)? (?:à|au|en|pour|de) (?:la |le )?"
        ),
        live="j'habite (?:à|en|au)|je vis (?:à|en|au)|j'habite|nous habitons à|nous vivons à",
        moved=r"(?:j'ai déménagé|je suis parti|nous avons déménagé)(?: de (?P<old>.+?))? (?:à|en|au)",
        work=(
            "je travaille (?:maintenant |désormais |actuellement )?(?:chez|pour|à)"
        ), use="j'utilise|nous utilisons|on utilise",
        switched=(
            r"(?:je suis passée?|nous sommes passés|nous avons migré|on est passés?|j'ai migré)(?: de (?P<old>.+?))? "
            r"(?:à|vers)"
        ),
        doubt=(
            "si|veux|voudrais|peut-être|espère|pense|pourrait|avant|quand|lorsque|autrefois|presque|a dit|vais|allons"
            "|jamais|ne|n'"
        ),
        past=(
            "avant|ancien|ancienne|précédente?|premi[eè]re?|à l'origine|autrefois|était|habitais|travaillais"
            "|utilisions"
        ),
        where_home=(
            "où est-ce que j'habite|où (?:j'habite|habité-je|habite-je)|dans quelle ville (?:j'habite|est-ce que"
            " j'habite|habité-je)|où habitais-je|où est-ce que j'habitais|où est-ce que je vis|où vis-je"
        ),
        where_work=(
            "où est-ce que je travaille|où (?:je travaille|travaillé-je)|pour qui est-ce que je travaille|où est-ce"
            " que je travaillais"
        ),
        asks=(
            "(?:quel|quelle|quels|quelles|qui|comment|où|quand|combien|à quelle heure|quel jour)(?: jour| heure)? "
            "(?:est|sont|s'appelle|était|coûte|a lieu)"
        ),
    ),
    "pt": _Language(
        mine="(?:o )?meus?|(?:a )?minhas?", ours="(?:o |a )?noss[oa]s?|o|a|os|as", be=(
            "é|são|está em|se chama|chama-se|fica em|custa|está"
        ),
        now="agora|atualmente|já|a partir de (?:hoje|agora)", new="nov[oa]s?|atual",
        change=(
            r"(?:foi |mudou|passou|foi )(?:adiad[oa]|mudad[oa]|alterad[oa]|movid[oa])?(?: de .+?)? ?(?:para|pra) (?:a"
            r" |o |as )?"
        ),
        live="(?:eu )?moro em|(?:eu )?vivo em|moramos em", moved=(
            r"(?:eu )?(?:me mudei|mudei|nos mudamos|mudamos)(?: de (?P<old>.+?))? para"
        ),
        work="(?:eu )?trabalho (?:na|no|em|para)", use="(?:eu )?uso|usamos|utilizamos",
        switched=r"(?:mudamos|migramos|mudei|passamos|passei)(?: do? (?P<old>.+?))? para(?: o)?",
        doubt=(
            "se|quero|gostaria|talvez|espero|penso|planejo|poderia|antes|quando|costumava|quase|disse|vou|vamos|nunca"
            "|não"
        ),
        past="antes|anterior|antig[oa]|primeir[oa]|originalmente|era|morava|trabalhava|usávamos",
        where_home=(
            "onde (?:eu )?(?:moro|vivo|morava)|em que cidade (?:eu )?(?:moro|vivo)"
        ), where_work="onde (?:eu )?trabalh(?:o|ava)",
        asks=(
            "(?:qual|quais|o que|quem|como|onde|quando|quanto|a que horas|que dia) (?:é|são|está|se chama|era|fica"
            "|custa)"
        ),
    ),
    "it": _Language(
        mine="(?:il |la |i |le )?(?:mio|mia|miei|mie)", ours="(?:il |la )?nostr[oaie]|il|la|lo|gli|le",
        be="è|sono|si chiama|costa|si trova a",
        now="ora|adesso|attualmente|da oggi", new="nuov[oaie]|attuale",
        change=(
            r"(?:è stat[oa] |è )?(?:spostat[oa]|rinviat[oa]|cambiat[oa]|passat[oa]|aumentat[oa]|anticipat[oa])(?: da"
            r" .+?)? (?:a|al|alle|in) "
        ),
        live="vivo a|abito a|viviamo a|abitiamo a", moved=(
            r"(?:mi sono trasferit[oa]|ci siamo trasferiti)(?: da (?P<old>.+?))? a"
        ),
        work="lavoro (?:per|in|alla|da|presso)", use="uso|usiamo|utilizziamo",
        switched=r"(?:siamo passati|sono passat[oa]|abbiamo migrato)(?: da (?P<old>.+?))? a",
        doubt="se|voglio|vorrei|forse|spero|penso|potrebbe|prima|quando|quasi|ha detto|mai|non",
        past="prima|precedente|vecchi[oa]|prim[oa]|originariamente|era|vivevo|abitavo|lavoravo|usavamo",
        where_home=(
            "dove (?:vivo|abito|vivevo|abitavo)|in che città (?:vivo|abito)"
        ), where_work="dove lavor(?:o|avo)|per chi lavoro",
        asks=(
            "(?:qual|quale|quali|chi|come|dove|quando|quanto|a che ora|che giorno)(?: è|'è| sono| si chiama| era|"
            " costa)"
        ),
    ),
    "nl": _Language(
        mine="mijn", ours="onze|ons|de|het", be="is|zijn|heet|kost",
        now="nu|tegenwoordig|momenteel|vanaf (?:nu|vandaag)", new="nieuwe?|huidige",
        change=(
            r"(?:is |zijn )?(?:verplaatst|verzet|gewijzigd|veranderd|verhoogd|verlaagd|uitgesteld)(?: van .+?)? naar "
        ),
        live="ik woon in|wij wonen in|we wonen in", moved=(
            r"(?:ik ben|we zijn|wij zijn)(?: van (?P<old>.+?))? naar (?P<new2>.+?) verhuisd"
        ),
        work="ik werk (?:bij|voor)", use="ik gebruik|we gebruiken|wij gebruiken",
        switched=r"(?:we zijn|ik ben)(?: van (?P<old>.+?))? (?:op|naar) (?P<new2>.+?) overgestapt",
        doubt="als|wil|zou|misschien|hoop|denk|vroeger|toen|bijna|zei|nooit|niet|ga",
        past="vroeger|eerder|vorige|oude|eerste|oorspronkelijk|was|woonde|werkte|gebruikten",
        where_home="waar woon(?:de)? ik|in welke stad woon ik", where_work="waar werk(?:te)? ik|voor wie werk ik",
        asks="(?:wat|wie|hoe|waar|wanneer|hoeveel|hoe laat|welke dag) (?:is|zijn|heet|was|kost)",
    ),
}  # fmt: skip


class _Rules(NamedTuple):
    noun: re.Pattern[str]
    verbs: tuple[tuple[re.Pattern[str], str, Signal], ...]
    doubt: re.Pattern[str]
    past: re.Pattern[str]
    home: re.Pattern[str]
    work: re.Pattern[str]
    noun_of_question: re.Pattern[str]
    new: re.Pattern[str]
    mine: re.Pattern[str]
    now: re.Pattern[str]


def _rules_of(one: _Language) -> _Rules:
    lead = rf"(?:(?:{one.now}),? )?"
    noun = rf"(?P<noun>(?:{one.mine}|{one.ours})[ ']?(?:[\w'-]+ ){{0,4}}?[\w'-]+?)"
    end = r"(?: (?:" + one.now + r"))?[ .!]*$"
    verbs: list[tuple[str, str, Signal]] = [
        (one.live, "home", ""), (one.work, "employer", ""), (one.use, USES, ""),
    ]  # fmt: skip
    changes: list[tuple[str, str, Signal]] = [(one.moved, "home", "change"), (one.switched, USES, "change")]
    patterns: list[tuple[str, str, Signal]] = [
        (rf"^{lead}(?P<now>{one.now} )?(?:{verb}) (?P<now2>(?:{one.now}) )?(?P<new>.+?)" + end, relation, signal)
        for verb, relation, signal in verbs
    ]
    patterns += [
        (rf"^{lead}(?:{verb})" + ("" if "new2" in verb else r" (?P<new>.+?)") + end, relation, signal)
        for verb, relation, signal in changes
    ]
    return _Rules(
        lazy_pattern(
            (
                rf"^{lead}{noun} (?:(?P<now>{one.now}) )?(?:(?P<changed>{one.change})(?P<to>.+?)|(?:{one.be}) "
                rf"(?P<now2>(?:{one.now}) )?(?P<value>.+?))(?P<end> (?:{one.now}))?[ .!]*$"
            ),
            I,
        ),
        compiled(*patterns, flags=I),
        lazy_pattern(rf"(?:^|[ ])(?:{one.doubt})(?:\b|(?='))", I),
        lazy_pattern(rf"\b(?:{one.past})\b", I),
        lazy_pattern(rf"^(?:{one.where_home})\b", I),
        lazy_pattern(rf"^(?:{one.where_work})\b", I),
        lazy_pattern(rf"^(?:{one.asks}) (?P<noun>(?:{one.mine}|{one.ours})[ ']?.+?)(?: (?:{one.now}))?$", I),
        lazy_pattern(rf"\b(?:{one.new}) ", I),
        lazy_pattern(rf"^(?:{one.mine}) ", I),
        lazy_pattern(rf"\b(?:{one.now})\b", I),
    )  # fmt: skip


_RULES: Final = {name: _rules_of(one) for name, one in LANGUAGES.items()}
_WORDS: Final = {
    "es": (
        "la se al en migramos cambiamos me vivo mi nuestra nuestro el los las mudé trabajo usamos está ahora dónde"
        " quién cuál cuándo qué cómo ¿dónde ¿cuál ¿quién ¿qué ¿cuándo ¿cómo es uso llama pasamos"
    ),
    "fr": (
        "je j'habite j'ai j'utilise mon ma mes notre est où quel quelle qui quand nous maintenant le les s'appelle"
        " utilisons comment travaille habite à"
    ),
    "pt": "eu moro meu minha nosso nossa é onde qual quem quando agora mudei trabalho usamos não o foi para",
    "it": (
        "a da trasferito trasferita mi mio mia nostro nostra è dove qual chi quando ora adesso abito vivo lavoro"
        " usiamo il sono si chiama qual"
    ),
    "nl": "ik mijn onze wij woon werk gebruik waar wie wat hoe wanneer nu het is heet zijn naar",
}
_SETS: Final = {name: frozenset(words.split()) for name, words in _WORDS.items()}
_SURE_TEXT = """
    vivo mi nuestra nuestro mudé trabajo usamos dónde quién cuál cuándo ¿dónde ¿cuál ¿quién ¿qué ¿cuándo ¿cómo está
    je j'habite j'ai j'utilise mon ma mes notre nous où quel quelle utilisons habite moro meu minha nosso nossa
    é onde qual mio mia nostro nostra è dove abito lavoro usiamo ik mijn onze wij woon werk gebruik waar wanneer
    uso migramos cambiamos sono eu il mis los la el chi
"""
SURE: Final = frozenset(_SURE_TEXT.split())


def language_of(words: set[str]) -> tuple[str, int]:
    """Return the likeliest language of lower-case words and the number of its words among them, 0 if it is none."""
    if words.isdisjoint(SURE):
        return "", 0
    counts = {name: len(words & known) for name, known in _SETS.items()}
    name = max(counts, key=counts.__getitem__)
    return name, counts[name]


def statements(sentence: str, language: str) -> Iterator[Statement]:
    """Yield what one sentence says of slots."""
    rules = _RULES[language]
    if rules.doubt.search(sentence):
        return
    for pattern, relation, signal in rules.verbs:
        if match := pattern.match(sentence):
            yield from _of_verb(match, relation, signal, rules)
            return
    if (match := rules.noun.match(sentence)) is None:
        return
    value = _cut(match["to"] or match["value"] or "")
    is_new = bool(
        rules.new.search(match["noun"])
        or match["now"]
        or match["now2"]
        or match["end"]
        or match["changed"]
        or rules.now.match(sentence)
    )
    slot = _noun_slot(match["noun"], rules)
    is_named = bool(kinds_of(value) & PLAIN_KINDS) or is_single(slot.relation)
    if value and (is_new or is_named) and not re.match(r"(?:muy|très|muito|molto|heel|une?|uma?|een)\b", value, I):
        yield Statement(*slot, value, "change" if is_new else "")


def _of_verb(match: re.Match[str], relation: str, signal: Signal, rules: _Rules) -> Iterator[Statement]:
    groups = {name: value for name, value in match.groupdict().items() if value}
    value = _cut(groups.get("new") or groups.get("new2") or "")
    old = _cut(groups.get("old", ""))
    if rules.now.search(match[0]):
        signal = "change"
    if value:
        slot = Slot(relation_of_use(value, old), GROUP) if relation == USES else Slot(relation, SPEAKER)
        yield Statement(*slot, value, signal, old)


def _cut(value: str) -> str:
    return re.split(
        (
            r"(?<!\d)[,;](?!\d)| (?:desde|depuis|porque|parce que|el mes pasado|le mois dernier|mês passado|il mese"
            r" scorso|vorige)\b"
        ),
        value,
    )[0].strip(" .!¡")[:60]


def _noun_slot(noun: str, rules: _Rules) -> Slot:
    bare = rules.new.sub("", noun.strip())
    subject = SPEAKER if rules.mine.match(bare) else GROUP
    words = bare.lower().split()
    relation = " ".join(words[1:]) if len(words) > 1 else words[0]
    relation = re.sub(
        (
            r"^(?:meus?|minhas?|nuestr\w+|noss\w+|mio|mia|nostr\w) |^(?:anterior|antigu[oa]|ancien(?:ne)?|vecchi[oa]"
            r"|oude) | (?:anterior|antigu[oa]|précédente?|precedente)$"
        ),
        "",
        relation,
    )
    return Slot(relation, subject)


def asked(question: str, language: str) -> Iterator[Slot]:
    """Yield the slots that a question asks for."""
    rules = _RULES[language]
    words = question.strip(" ?!.¿")
    if rules.home.match(words):
        yield Slot("home", SPEAKER)
    elif rules.work.match(words):
        yield Slot("employer", SPEAKER)
    elif match := rules.noun_of_question.match(words):
        yield _noun_slot(match["noun"], rules)


def is_about_past(question: str, language: str) -> bool:
    """Return True if a question asks for what was, not for what is."""
    return _RULES[language].past.search(question) is not None


_JA_DOUBT: Final = lazy_pattern(
    "もし|たら|れば|たい|つもり|予定(?!は)|かもしれ|でしょう|昔|以前|前は|かつて|頃|思い|思う|と言|そうです"
    "|ません|ない|か$|だろう"
)
_JA_VERBS: Final = compiled(
        ((
            r"^(?:私は)?(?:先月|先週|最近|今は|今|現在)?、?(?:(?P<old>.{1,12}?)から)?(?P<new>[^はが]{1,15}?)(?:に|へ)("
                r"?:引っ越しました|引っ越した|引越しました"
            r"|移りました)$"
        ), "home", "change"),
        (r"^(?:私は)?(?P<now>今は|今|現在)?、?(?P<new>[^はが]{1,15}?)に住んで(?:います|いる)$", "home", ""),
        ((
            r"^(?:私は)?(?:先月|先週|最近)?、?(?:(?P<old>.{1,12}?)から)?(?P<new>[^はが]{1,15}?)に転職(?:しました|した)$"
        ), "employer", "change"),
        ((
            r"^(?:私は)?(?P<now>今は|今|現在)?、?(?P<new>[^はが]{1,15}?)(?:で働いて(?:います|いる)|に勤めて(?:います"
            r"|いる))$"
        ), "employer", ""),
        ((
            r"^(?:私たちは|私は)?(?P<old>.{1,15}?)から(?P<new>[^はが]{1,15}?)に(?:移行|変更|切り替え|乗り換え)(?:しました"
            r"|ました|した)$"
        ), USES, "change"),
        (r"^(?:私たちは|私は)?(?P<now>今は|今|現在)?、?(?P<new>[^はが]{1,15}?)を使って(?:います|いる)$", USES, ""),
)  # fmt: skip
_JA_NOUN: Final = lazy_pattern(
    r"^(?P<mine>私の)?(?P<new>新しい)?(?P<noun>[^は、が]{1,14}?)[はが](?P<now>今は|今|現在)?、?(?P<value>.{1,30}"
    r"?)(?P<end>に変わりました"
    r"|になりました|に変更(?:されました|になりました|しました)|です|だ)$"
)
_JA_PAST: Final = lazy_pattern("以前|昔|前の|前は|かつて|元の|元々|最初|でした|ましたか")


def japanese_statements(sentence: str) -> Iterator[Statement]:
    """Yield what one Japanese sentence says of slots."""
    sentence = sentence.strip(" 。！!")
    if _JA_DOUBT.search(sentence):
        return
    for pattern, relation, signal in _JA_VERBS:
        if match := pattern.match(sentence):
            groups = {name: value for name, value in match.groupdict().items() if value}
            new, old = groups["new"], groups.get("old", "")
            slot = Slot(relation_of_use(new, old), GROUP) if relation == USES else Slot(relation, SPEAKER)
            yield Statement(*slot, new, "change" if "now" in groups else signal, old)
            return
    if match := _JA_NOUN.match(sentence):
        is_new = bool(match["new"] or match["now"] or match["end"] not in {"です", "だ"})
        yield Statement(match["noun"], SPEAKER if match["mine"] else GROUP, match["value"], "change" if is_new else "")


def japanese_asked(question: str) -> Iterator[Slot]:
    """Yield the slots that a Japanese question asks for."""
    words = question.strip(" ？?。")
    if re.search("どこに住んで|どこに引っ越", words):
        yield Slot("home", SPEAKER)
    elif re.search("どこで働いて|どこに勤めて|勤務先|会社はどこ", words):
        yield Slot("employer", SPEAKER)
    elif match := re.match(
        r"^(?P<mine>私の)?(?:新しい|今の|現在の|前の|以前の|元の|最初の)?(?P<noun>[^は]{1,14}?)は", words
    ):
        yield Slot(match["noun"], SPEAKER if match["mine"] else GROUP)


def is_japanese_past(question: str) -> bool:
    """Return True if a Japanese question asks for what was, not for what is."""
    return _JA_PAST.search(question) is not None
