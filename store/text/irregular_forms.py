"""Words of other languages by forms that their stemmers do not know: "fuhr" is "fahren", "hizo" is "hacer".

All words are folded: without accents, `ss` for `ß`. The English ones are in `store.text.stems`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

_GERMAN_VERBS: Final = """backen backt backte gebacken|befehlen befiehlt befahl befohlen|beginnen - begann begonnen|
beissen - biss gebissen|bergen birgt barg geborgen|betrugen - betrog betrogen|biegen - bog gebogen|
bieten - bot geboten|binden - band gebunden|bitten - bat gebeten|blasen blast blies geblasen|bleiben - blieb geblieben|
braten brat briet gebraten|brechen bricht brach gebrochen|brennen - brannte gebrannt|bringen - brachte gebracht|
denken - dachte gedacht|durfen darf durfte gedurft|empfehlen empfiehlt empfahl empfohlen|
erschrecken erschrickt erschrak erschrocken|essen isst ass gegessen|fahren fahrt fuhr gefahren|
fallen fallt fiel gefallen|fangen fangt fing gefangen|finden - fand gefunden|fliegen - flog geflogen|
fliehen - floh geflohen|fliessen - floss geflossen|fressen frisst frass gefressen|frieren - fror gefroren|
geben gibt gab gegeben|gehen - ging gegangen|gelingen - gelang gelungen|gelten gilt galt gegolten|
geniessen - genoss genossen|geschehen geschieht geschah geschehen|gewinnen - gewann gewonnen|giessen - goss gegossen|
graben grabt grub gegraben|greifen - griff gegriffen|halten halt hielt gehalten|hangen hangt hing gehangen|
heben - hob gehoben|heissen - hiess geheissen|helfen hilft half geholfen|kennen - kannte gekannt|
klingen - klang geklungen|kommen - kam gekommen|kriechen - kroch gekrochen|laden ladt lud geladen|
lassen lasst liess gelassen|laufen lauft lief gelaufen|leiden - litt gelitten|leihen - lieh geliehen|
lesen liest las gelesen|liegen - lag gelegen|lugen - log gelogen|messen misst mass gemessen|mogen mag mochte gemocht|
mussen muss musste gemusst|nehmen nimmt nahm genommen|nennen - nannte genannt|pfeifen - pfiff gepfiffen|
raten rat riet geraten|reiben - rieb gerieben|reissen - riss gerissen|reiten - ritt geritten|rennen - rannte gerannt|
riechen - roch gerochen|rufen - rief gerufen|saufen sauft soff gesoffen|schaffen - schuf geschaffen|
scheiden - schied geschieden|scheinen - schien geschienen|schieben - schob geschoben|schiessen - schoss geschossen|
schlafen schlaft schlief geschlafen|schlagen schlagt schlug geschlagen|schleichen - schlich geschlichen|
schliessen - schloss geschlossen|schmeissen - schmiss geschmissen|schmelzen schmilzt schmolz geschmolzen|
schneiden - schnitt geschnitten|schreiben - schrieb geschrieben|schreien - schrie geschrien|
schweigen - schwieg geschwiegen|schwimmen - schwamm geschwommen|schworen - schwor geschworen|sehen sieht sah gesehen|
senden - sandte gesandt|singen - sang gesungen|sinken - sank gesunken|sitzen - sass gesessen|spinnen - spann gesponnen|
sprechen spricht sprach gesprochen|springen - sprang gesprungen|stechen sticht stach gestochen|
stehen - stand gestanden|stehlen stiehlt stahl gestohlen|steigen - stieg gestiegen|sterben stirbt starb gestorben|
stinken - stank gestunken|stossen stosst stiess gestossen|streichen - strich gestrichen|streiten - stritt gestritten|
tragen tragt trug getragen|treffen trifft traf getroffen|treiben - trieb getrieben|treten tritt trat getreten|
trinken - trank getrunken|tun tut tat getan|verderben verdirbt verdarb verdorben|vergessen vergisst vergass vergessen|
verlieren - verlor verloren|verzeihen - verzieh verziehen|wachsen wachst wuchs gewachsen|
waschen wascht wusch gewaschen|weichen - wich gewichen|weisen - wies gewiesen|wenden - wandte gewandt|
werben wirbt warb geworben|werfen wirft warf geworfen|wiegen - wog gewogen|winden - wand gewunden|
wissen weiss wusste gewusst|ziehen - zog gezogen|zwingen - zwang gezwungen"""
"""Infinitive, third person of the present if its vowel changes, past and participle."""
_GERMAN: Final = """ei eier eiern eis|knie knien|museum museen|zentrum zentren|datum daten|album alben|
visum visa visen|praktikum praktika|antibiotikum antibiotika|lexikon lexika|virus viren|globus globen|
rhythmus rhythmen|typus typen|villa villen|firma firmen|konto konten|risiko risiken|thema themen|drama dramen|
atlas atlanten|kaktus kakteen|mutter mutti|vater vati|
gut besser bessere besseren besserer besseres beste besten bester bestes|gross grosste grosster grossten|
viel mehr meiste meisten|gern lieber liebsten|hoch hoher hohe hohen hohes hochste hochsten|
nah naher nachste nachsten"""
_SPANISH: Final = """ir voy vas va vamos van iba ibas iban fui fuiste fue fuimos fueron|
tener tengo tienes tiene tienen tuve tuviste tuvo tuvimos tuvieron tendre tendra|
hacer hago hice hiciste hizo hicimos hicieron hare hara hecho|
decir digo dices dice dicen dije dijo dijimos dijeron dicho dira|
poder puedo puedes puede pueden pude pudo pudimos pudieron podre podra|
poner pongo puse puso pusimos pusieron puesto pondre|
querer quiero quieres quiere quieren quise quiso quisimos quisieron|saber supe supo supimos supieron|
venir vengo vienes viene vienen vine vino vinimos vinieron vendra|ver veo vio vieron visto|dar doy dio dieron|
traer traigo traje trajo trajimos trajeron|conducir conduzco conduje condujo condujimos condujeron|conocer conozco|
dormir duermo duermes duerme duermen durmio durmieron|morir muero muere mueren murio murieron muerto|
pedir pido pides pide piden pidio pidieron|seguir sigo sigue siguen siguio|sentir siento siente sienten sintio|
perder pierdo pierde pierden|pensar pienso piensas piensa piensan|empezar empiezo empieza empiezan empece|
volver vuelvo vuelves vuelve vuelven vuelto|encontrar encuentro encuentra encuentran|contar cuento cuenta cuentan|
jugar juego juegas juega juegan jugue|cerrar cierro cierra cierran|romper roto|escribir escrito|abrir abierto|
leer leyo leyeron|caer caigo cayo cayeron|oir oigo oyes oye oyen oyo|construir construyo construye|salir salgo|
costar cuesta cuestan|mostrar muestra|probar pruebo prueba|recordar recuerdo recuerda|mover muevo mueve|
doler duele duelen|servir sirve sirven|vestir viste visten|elegir elijo elige|preferir prefiero prefiere prefieren|
andar anduve anduvo anduvimos anduvieron|buscar busque|llegar llegue|pagar pague|tocar toque|sacar saque|
almorzar almuerzo almuerza"""
_FRENCH: Final = """aller vais vas va vont ira irai iront|faire fais font fera ferai faisait|
pouvoir peux peut peuvent pu pourra|vouloir veux veut veulent voulu voudrais|devoir dois doit doivent devra|
savoir sais sait savent su saura|voir vois voit voient vu verra|venir viens vient viennent venu viendra|
tenir tiens tient tiennent tenu|prendre prends prend prennent pris prise|mettre mets met mettent mis mise|
dire dis dit disent dite|lire lis lit lisent lu lue|ecrire ecris ecrit ecrivent ecrite|boire bois boit boivent bu|
croire crois croit croient cru|connaitre connais connait connaissent connu|peindre peint peinte peignent|
craindre crains craint|recevoir recois recoit recoivent recu|conduire conduis conduit conduisent|
ouvrir ouvre ouvrent ouvert ouverte|offrir offre offert offerte|mourir meurs meurt meurent mort morte|
naitre nait ne nee|vivre vis vit vivent vecu|suivre suit suivent suivi|rire ris rit ri|
courir cours court courent couru|dormir dors dort dorment|partir pars part partent|sortir sors sort sortent|
sentir sens sent sentent|servir sers sert servent|acheter achete achetent|appeler appelle appellent|
jeter jette jettent|payer paie paient|envoyer envoie envoient enverra|essayer essaie essaient|oeil yeux|genou genoux|
bijou bijoux|monsieur messieurs|madame mesdames"""
_ITALIAN: Final = """andare vado vai va vanno andro|fare faccio fai fa fanno feci fece fecero fatto|
dire dico dici dice dicono disse detto|dare danno diede dato|venire vengo vieni viene vengono venne venuto verra|
tenere tengo tieni tiene tengono|potere posso puoi puo possono|volere voglio vuoi vuole vogliono|
dovere devo devi deve devono|sapere so sanno seppe|bere bevo bevi beve bevono bevuto|uscire esco esci esce escono|
rimanere rimango rimasto rimasta|scegliere scelgo scelto|prendere preso presa prese|mettere messo messa mise|
leggere letto letta lesse|scrivere scritto scritta scrisse|vedere visto vista vide|chiudere chiuso chiusa chiuse|
aprire aperto aperta|vivere vissuto visse|perdere perso persa|rompere rotto rotta ruppe|correre corso corse|
chiedere chiesto chiese|rispondere risposto rispose|spendere speso spese|nascere nato nata nacque|
morire muoio muore muoiono morto morta|salire salgo salgono|sedere siedo siede|piacere piaciuto piacque|
vincere vinto vinse|spegnere spento spense|offrire offerto|cuocere cotto cotta|decidere deciso decise|uovo uova|
dito dita|braccio braccia|ginocchio ginocchia|uomo uomini|amico amici|osso ossa|paio paia"""
_PORTUGUESE: Final = """ir vou vais vai vamos vao fui foi fomos foram|ter tenho tens tinha tive teve tivemos tiveram|
fazer faco faz fazem fiz fez fizemos fizeram feito|dizer digo diz dizem disse disseram dito|
poder posso pode podem pude pode|por ponho poe poem pus puseram posto|querer quer quis quiseram|
saber sei soube souberam|vir venho vem veio vieram vindo|ver vejo viu viram visto|dar dou deu deram|
trazer trago traz trouxe trouxeram|ler leio leu leram|dormir durmo|pedir peco|ouvir ouco|perder perco|
sair saio sai saiu|cair caio cai caiu|escrever escrito|abrir aberto|pagar pago paguei|sentir sinto|servir sirvo|
preferir prefiro|vestir visto|subir sobe sobem|medir meco|ficar fiquei|chegar cheguei|comecar comecei"""
_DUTCH: Final = """beginnen begon begonnen|bieden bood geboden|binden bond gebonden|blijven bleef bleven gebleven|
breken brak braken gebroken|brengen bracht gebracht|denken dacht gedacht|doen doet deed deden gedaan|
dragen droeg gedragen|drinken dronk gedronken|eten at aten gegeten|gaan gaat ging gegaan|geven gaf gaven gegeven|
hangen hing gehangen|helpen hielp geholpen|houden hield gehouden|kiezen koos kozen gekozen|kijken keek keken gekeken|
komen kwam kwamen gekomen|kopen kocht gekocht|krijgen kreeg kregen gekregen|laten liet gelaten|lezen las lazen gelezen|
liggen lag lagen gelegen|lopen liep gelopen|nemen nam namen genomen|rijden reed reden gereden|roepen riep geroepen|
schrijven schreef schreven geschreven|slaan slaat sloeg geslagen|slapen sliep geslapen|sluiten sloot sloten gesloten|
snijden sneed sneden gesneden|spreken sprak spraken gesproken|springen sprong gesprongen|staan staat stond gestaan|
stelen stal stalen gestolen|sterven stierf gestorven|trekken trok getrokken|vallen viel gevallen|vangen ving gevangen|
vergeten vergat vergaten|verliezen verloor verloren|vinden vond gevonden|vliegen vloog vlogen gevlogen|
vragen vroeg gevraagd|weten wist geweten|winnen won gewonnen|zeggen zei zeiden gezegd|zien zag zagen gezien|
zingen zong gezongen|zitten zat zaten gezeten|zoeken zocht gezocht|zwemmen zwom gezwommen|kind kinderen|ei eieren|
stad steden|schip schepen|lid leden|blad bladeren|koe koeien|goed beter beste"""
_TABLES: Final = {
    "german": _GERMAN,
    "spanish": _SPANISH,
    "french": _FRENCH,
    "italian": _ITALIAN,
    "portuguese": _PORTUGUESE,
    "dutch": _DUTCH,
}
_PREFIXES: Final = {
    "german": re.compile(
        "(ab|an|auf|aus|be|bei|durch|ein|ent|er|fern|fest|fort|ge|her|herum|hin|hinter|los|mit|miss|nach|statt|teil"
        "|uber|um|unter|ver|vor|vorbei|weg|weiter|wieder|zer|zu|zuruck|zusammen)(.+)"
    ),
    "dutch": re.compile("(aan|achter|af|be|bij|door|in|mee|na|om|ont|onder|op|over|terug|toe|uit|ver|voor|weg)(.+)"),
}
"""Prefix, and the verb with it."""
_ENDINGS: Final = {
    "spanish": (("ces", "z"), ("ia", "er"), ("ias", "er"), ("iamos", "er"), ("ian", "er"), ("io", "er")),
    "french": (("aux", "ail"),),
    "portuguese": (("oes", "ao"), ("aes", "ao"), ("aos", "ao"), ("ais", "al"), ("eis", "el"), ("ois", "ol")),
    "german": (("ien", "ium"),),
}
"""Endings of plurals, and of Spanish verbs whose accent is folded, with those of their base."""
_SEPARABLE: Final = (
    "ab|an|auf|aus|bei|ein|fern|fest|fort|her|hin|los|mit|nach|statt|teil|um|vor|weg|weiter|zu|zuruck|zusammen"
)
_SEPARATED: Final = re.compile(rf"({_SEPARABLE})zu(\w{{3,}})en")
_PARTICIPLE: Final = re.compile(rf"({_SEPARABLE})?ge(\w{{3,}}?)e?t")
_CONJUGATED: Final = re.compile(r"(\w{3,}?)(?:(?<=[td])e|(?<!t))(?:t|te|ten|test|tet)")
"""German: "abzuholen"; "abgeholt" and "gekocht"; "kocht", "kochte" and "arbeitetest"."""


def bases(word: str, language: str) -> tuple[str, ...]:
    """Return a folded word, and the words that have it as a form in a language."""
    return tuple(dict.fromkeys([word, *(_of_tables(word, language) or _by_rules(word, language))]))


def _of_tables(word: str, language: str) -> list[str]:
    table = _forms(language)
    if word in table:
        return table[word]
    prefixed = _PREFIXES[language].fullmatch(word) if language in _PREFIXES else None
    return [prefixed[1] + base for base in table.get(prefixed[2], ())] if prefixed else []


def _by_rules(word: str, language: str) -> Iterator[str]:
    for ending, replacement in _ENDINGS.get(language, ()):
        if len(word) > len(ending) and word.endswith(ending):
            yield word.removesuffix(ending) + replacement
    if language == "german" and (found := _SEPARATED.fullmatch(word) or _PARTICIPLE.fullmatch(word)):
        yield f"{found[1] or ''}{found[2]}en"


def infinitives(word: str) -> Iterator[str]:
    """Yield the German infinitives that have a folded word as a form, perhaps: "kochen" for "kocht" and "kochen".

    They are not to be stemmed, so that "Markt" meets no "Mark".
    """
    if verb := _CONJUGATED.fullmatch(word):
        yield f"{verb[1]}en"
    yield from (base for base in bases(word, "german") if base.endswith("en"))


@cache
def _forms(language: str) -> dict[str, list[str]]:
    """Return the words of the tables by each of their forms."""
    found: dict[str, list[str]] = {}
    entries = [*_entries(_TABLES.get(language, "")), *(_conjugated() if language == "german" else ())]
    for base, *forms in entries:
        for form in forms:
            found.setdefault(form, []).append(base)
    return found


def _entries(table: str) -> Iterator[list[str]]:
    yield from (line.split() for line in table.replace("\n", "").split("|") if line)


def _conjugated() -> Iterable[list[str]]:
    """Yield German verbs with their forms."""
    for infinitive, present, past, participle in _entries(_GERMAN_VERBS):
        forms = [past + ending for ending in ("", "st", "t", "en", "n")] + [participle]
        if present != "-":
            forms += [present, present.removesuffix("t"), present.removesuffix("t") + "st"]
        yield [infinitive, *forms]
