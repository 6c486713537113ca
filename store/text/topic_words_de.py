"""German words of the topics that a person may never have remembered. See `store.text.topics` for the kinds.

Words are folded: in lower case, without umlauts. `~` stands for any letters.
"""

from collections.abc import Mapping
from typing import Final

_KIN = """frau, mann, ehefrau, ehemann, ex-frau, ex-mann, tochter, sohn, sohne, kind, kinder, baby, mutter, vater,
mama, papa, eltern, bruder, schwester, geschwister, zwilling~, oma, opa, grosseltern, grossmutter, grossvater,
enkel~, tante, onkel, cousin~, kusine, neffe, nichte, schwager~, schwieger~, stiefmutter, stiefvater, stiefsohn,
stieftochter, stiefbruder, familie, verlobte~"""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "health": {
        "am": """schwindlig, schwindelig, ubel, heiser, fiebrig, magersuchtig, alkoholiker~, trockene\\w*
            alkoholiker~, diabetiker~, asthmatiker~, epileptiker~, allergiker~, autist~, querschnitt~, gehbehindert,
            schwerbehindert, sehbehindert, schwerhorig, farbenblind, chronisch krank, pflegebedurftig, clean,
            ruckfallig, in psychiatr\\w+, in der klinik, beim psychologen, ansteckend, genesen, gesturzt,
            zuckerkrank, krebskrank, psychisch, stationar, arbeitsunfahig, ohnmachtig, untergewichtig, wochen
            schwanger, intolerant, lungenkrank, nierenkrank, krank, schwanger, im \\w+ monat, allergisch, depressiv,
            suchtig, trocken, behindert, taub, blind, erkaltet, operiert, verletzt, gelahmt, geimpft,
            krankgeschrieben, ubergewichtig, kurzsichtig, herzkrank, unfruchtbar, in therapie, in behandlung, beim
            arzt, im krankenhaus, in der reha, ausgebrannt, hiv~""",
        "my": """\\w+arzt, \\w+arztin, orthopade~, kardiologe~, internist~, hebamme, pfleger~, physiotherap~,
            zahne?, zahn, augen, ohren, beine?, bein, arm, arme, fuss, fusse, hufte, magen, darm, blase, haut,
            lunge, bauch, kopf, nacken, hals, gelenk~, zyklus, wechseljahre, kur(?!s), reha, gebiss, prothese,
            herzschrittmacher, horgerate, sehkraft, zucker, puls, pflegegrad, sucht, angste, essstorung, psyche,
            termin beim \\w+arzt, narbe, gips, kruecken, krucken, arzt, arztin, hausarzt~, zahnarzt~, frauenarzt~,
            psychiater~, therapeut~, psychologe, blutdruck, blutzucker, blutwerte, cholesterin~, gewicht, krankheit,
            diagnose, symptome, beschwerden, behinderung, krankenkasse, schwangerschaft, periode, regel,
            schilddruse, rucken, knie, schulter, bandscheibe, herz, leber, niere, galle, gesundheit, medikament~,
            tabletten, brille, horgerat, rollstuhl, operation, befund, impfung, schlaf""",
        "any": """kaum noch luft, keine luft, luft (?:\\w+ ){0,2}(?:bekomme|kriege), der op, die op, ops?\\b,
            durchschlaf~, einschlaf~, schlafprobleme, medikinet, ritalin, aufmerksamkeits~, asperger, spektrum,
            adhs, ads, panik, angst ?attacken, angstzustande, depressiv~, psychisch~, klinik~, physio~, therapeut~,
            psycholog~, krebs~, tumor~, dosis, krankheit~, diagnose, befund, beschwerden, symptom~, allergisch,
            schwanger~, fruhgeburt, wochenbett, kaiserschnitt, hort(?:e|en)? schlecht, blind, taub, behindert~,
            epileptisch~, anfall, anfalle, \\w+(?:tralin|zepin|apin|idon|lopram|faxin|thyroxin|trigin|dopamin|codin|
            tidin)\\b, l-thyroxin, ibuprofen, ramipril, tavor, an meine\\w? (?:leber|lunge|niere|brust|schilddruse|
            haut), (?:haben|hat) (?:\\w+ ){0,3}was (?:\\w+ ){0,5}gefunden, zusammengebrochen, ambulanz, trinke
            (?:\\w+ )?(?:keinen alkohol|nicht mehr|zu viel), rauche (?:\\w+ )?(?:nicht mehr|zu viel|wieder), herz~
            (?:\\w+ ){0,2}(?:operation|fehler|schmerzen), blutwerte, eisenmangel, vitamin~mangel, hormon~, (?:mein|
            meine|meinem|meiner|meinen) (?:\\w+ )?(?:therapeut|psycholog|psychiat|physio)\\w*, stillen, stille noch,
            geburt, hebamme, kinderwunsch~, wartezimmer, (?:nerven|kranken|haus)arzt, impfung, nebenwirkung~, nehme
            (?:\\w+ ){0,5}(?:tabletten|tropfen|mg|milligramm|medikament~), schluck~ (?:\\w+ ){0,3}tabletten,
            mandelentzundung, gelahmt, unfall, wurde (?:\\w+ ){0,4}festgestellt, (?:bei mir|bei meine\\w) (?:\\w+
            ){0,5}(?:festgestellt|diagnostiziert|gefunden|entdeckt), multiple sklerose, parkinson, narkose,
            herausgenommen, gallenblase, gallenstein~, blinddarm, mandeln, krampfader~, thrombose, embolie,
            lungenentzundung, bronchitis, \\w+entzundung, \\w+infektion, infekt, \\w*infarkt, herzrhythmus~,
            vorhofflimmern, stent, bypass, herzschrittmacher, \\w+(?:statin|pril|olol|azol|prazol|cillin|oxetin|
            pram|azepam|sartan|gabalin|formin|profen|glutid), paracetamol, aspirin, cortison, kortison, morphium,
            schmerzmittel, schlafmittel, schlaftablette~, blutverdunner, spritze, spritzen, impfen lassen, geimpft,
            horgerat~, zahnarzt, frauenarzt, hausarzt, orthopade~, chemotherapie, bestrahlung~, biopsie,
            darmspiegelung, magenspiegelung, ultraschall, mammografie, mammographie, blutbild, blutabnahme,
            blutprobe, gips, krucken, rollator, rollstuhl, prothese, metastase~, knoten in der brust, leukamie,
            melanom, geschwur, gastritis, morbus crohn, colitis, gicht, osteoporose, skoliose, ischias, hexenschuss,
            tinnitus, horsturz, gurtelrose, nesselsucht, schuppenflechte, ekzem~, akne, ausschlag, gluten~,
            zoliakie, laktose~, anaphyla~, schwindel~, ohnmacht, kreislauf~, herzrasen, herzklopfen, atemnot,
            kurzatmig, ubergeben, durchfall, verstopfung, sodbrennen, hitzewallung~, wechseljahre, schwangerschaft~,
            wehen, entbindung, eisprung, kunstliche befruchtung, unfruchtbar, trauma, traumatisiert, psychose,
            schizophren~, borderline, bipolar, zwangsstorung, essstorung, zwange, nervenzusammenbruch, suizid~,
            selbstmord, ritze mich, entzug, entzugsklinik, alkoholproblem, alkoholsucht, drogensucht, spielsucht,
            suchtberatung, anonyme\\w* alkoholiker, nicht mehr (?:geraucht|getrunken)\\b, aufgehort zu (?:rauchen|
            trinken), rauchfrei, pflegeheim, pflegegrad, schwerbehindertenausweis, behinderung, notaufnahme,
            rettungswagen, krankenwagen, intensivstation, krankschreib~, krankenschein, rezept vom arzt, attest,
            (?:knie|rucken|hufte|schulter|bein|arm|fuss|kopf|bauch|magen|hals|nacken|zahn|ohr|auge|gelenk)\\w*
            (?:\\w+ ){0,3}(?:weh|schmerzt|tut|sticht|brennt|juckt|taub|geschwollen|entzundet), weh ?tut, tut (?:\\w+
            ){0,3}weh, brille, kontaktlinse~, astigmatis~, kurzsichtig, weitsichtig, grauer star, gruner star,
            blasenschwache, inkontinen~, prostata~, gebarmutter~, eierstock~, brustkrebs, darmkrebs, herzschwache,
            nierenversagen, leberzirrhose, dialyse, transplantation, organspende, bandscheibe~, meniskus, kreuzband,
            sehnenscheiden~, karpaltunnel~, (?:zu|bei|zum|beim) (?:dr\\.?|doktor|arzt|zahnarzt), wegen (?:dem|
            meinem|des|der|meiner) (?:knie|rucken|herz|schulter|magen|hufte), (?:tage|wochen|monate) krank, diabet~,
            krebs, \\w+krebs, tumor, chemo~, asthma, epilep~, arthrose, rheuma, migrane, \\w+schmerz, \\w+schmerzen,
            schmerzen, allergie~, depression~, panikattacke~, angststorung, burnout, autis~, demenz, alzheimer,
            herzinfarkt, schlaganfall, bandscheibenvorfall, bluthochdruck, blutdruck, grippe, corona, covid~,
            fieber, husten, fehlgeburt, therapie, psychotherapie, reha, operation, operiert, rontgen, mrt,
            medikament~, tabletten, antibiotik~, antidepressiv~, betablocker, insulin, verschrieben, diagnostiziert,
            krankgeschrieben, krankenhaus, klinik, schlaflos~, schlafstorung~, schlafe schlecht, kann nicht
            schlafen, gebrochen, verstaucht, magersucht, bulimie, abgenommen, zugenommen, ubelkeit, neurodermitis,
            heuschnupfen, zucker ist, unvertraglichkeit, intoleranz""",
    },
    "money": {
        "am": """mittellos, uberschuldet, in den miesen, im minus, im ruckstand, wohlhabend, finanziell \\w+, in
            (?:der )?privatinsolvenz, klamm, pleite, verschuldet, bankrott, insolvent, blank, knapp bei kasse, arm,
            reich""",
        "my": """netto, nettolohn, bruttogehalt, stundenlohn, monatslohn, taschengeld, kindergeld, elterngeld,
            dispo, sparbuch, sparplan, festgeld~, tagesgeld~, kontostand, geld, geldborse, vermieter~, kaution,
            nebenkosten, mietvertrag, versicherung~, raten, steuer, altersvorsorge, pension, witwenrente, riester~,
            bausparvertrag, finanzierung, ausgaben, einnahmen, gehalt, lohn, einkommen, rente, ersparnisse,
            schulden, kredit, hypothek, miete, konto, bankkonto, girokonto, kreditkarte, bank, depot, aktien,
            steuer~, budget, vermogen, erbe, erbschaft, rechnungen, iban, bonus, finanzen, unterhalt, darlehen""",
        "any": """auf (?:dem|meinem|unserem) konto, hausbau (?:\\w+ ){0,3}ubernommen, finanziell~, geldprobleme,
            knapp bei kasse, monatsende, ende des monats (?:\\w+ ){0,3}(?:geld|pleite|nichts), teuer geworden, kann
            mir (?:\\w+ ){0,4}leisten, konnen uns (?:\\w+ ){0,4}leisten, nicht (?:mehr )?leisten, sparen, gespart~,
            rucklagen, \\w*rente, pensionsanspruch, verdienst, gutverdiener~, mindestlohn, steuerschuld, investier~,
            angelegt, aktie, krypto~, anlageberater, bankberater~, dauerauftrag, lastschrift, miete, fehlen (?:mir|
            uns)? ?(?:\\w+ ){0,3}euro, (?:mir|uns) fehl\\w+ (?:\\w+ ){0,3}(?:euro|geld), meinem geld, geld (?:\\w+
            ){0,4}(?:reicht|knapp|weg|verloren|leihen|fehlt|sparen|anlegen|angelegt), reicht (?:\\w+ ){0,3}(?:geld|
            rente|lohn|gehalt), stromrechnung, heizkosten, gasrechnung, nachzahlung, rechnung nicht, sparkasse, bank
            (?:\\w+ ){0,4}(?:abgelehnt|kredit|gekundigt), angespart, ruckzahlung, existenzminimum, wertpapier~,
            verlust gemacht, gewinn gemacht, stundenlohn, (?:euro|franken) (?:\\w+ ){0,3}(?:schulden|die stunde|pro
            stunde|im jahr|jahrlich), trinkgeld, erbe, alleinerbe, testament, \\w*schulden, verschuldet,
            \\w*insolvenz, pfandung~, gerichtsvollzieher~, inkasso~, mahnung, mahnungen, mahnbescheid, ratenzahlung,
            \\w*kredit, kredite, kreditkarte, dispo~, im minus, in den miesen, ins minus, im plus, abbezahl~,
            zuruckzahl~, abzahl~, rente, rentenbescheid, altersarmut, altersvorsorge, grundsicherung, elterngeld,
            kindergeld, bafog, krankengeld, steuerruckzahlung, steuererstattung, steuerbescheid,
            steuerruckerstattung, (?:abzug|hohe) der miete, nach abzug, mieterhohung, mietschulden, nebenkosten~,
            festgeld~, tagesgeld~, sparbuch, sparplan, sparkonto, bausparvertrag, \\w*depot, fonds, etfs,
            anlage(?:n|konto), dividende~, zinsen, erspart~, beiseitegelegt, beiseite gelegt, auf die seite gelegt,
            zurucklegen, auf der hohen kante, gesperrt~ konto, konto (?:\\w+ ){0,2}(?:gesperrt|leer|uberzogen),
            karte gesperrt, uber die runden, kein geld, geldsorgen, geldnot, pleite, nicht bezahlen, nicht mehr
            bezahlen, zu teuer fur (?:mich|uns), (?:euro|franken|schilling) (?:\\w+ ){0,4}(?:im monat|monatlich|
            netto|brutto|geerbt|schuld~|gespart|verdien~|verloren|gewonnen|uberwiesen|geliehen|zahl~|auf dem|
            angelegt|ubrig|nachzahl~), (?:habe|hab|haben|hatte|bleiben|bleibt|verdiene|zahle|zahlen|bekomme|kriege|
            krieg|bekommen|schulde|schuldet|liegen|leihe|lieh|geliehen) (?:\\w+ ){0,5}# ?(?:euro|eur|franken),
            (?:habe|hab|haben|habe ich) (?:\\w+ ){0,3}# (?:\\w+ ){0,3}(?:liegen|gespart|angelegt|angespart|geerbt|
            verloren|ubrig|zur seite), geerbt, erbe ausgezahlt, erbteil, lottogewinn, gewonnen im lotto, verspielt,
            verzockt, spielschulden, unterhalt, alimente, gehaltsabrechnung, lohnabrechnung, \\w*lohn,
            weihnachtsgeld, urlaubsgeld, bonuszahlung, abfindung, geliehen, leihe dir, pumpe, verdien~, euro netto,
            schulden, kredit, hypothek, darlehen, uberzogen, dispo, burgergeld, hartz, arbeitslosengeld,
            sozialhilfe, wohngeld, gehalt~, lohn, spare, gespart, ersparnisse, aktien, etf, bitcoin, erbschaft,
            vermogen, steuererklarung, steuernachzahlung, finanzamt, miete (?:\\w+ ){0,4}(?:zahlen|bezahlen), nicht
            leisten, schulde, insolvenz, rente von, rente betragt, gehaltserhohung""",
    },
    "religion": {
        "am": """muslima, moslemin, alevit~, sunnit~, schiit~, katholik~, protestant~, ungetauft, unglaubig,
            konfessionslos, sikh, bahai, mormon~, adventist~, baptist~, methodist~, quaker~, freikirch~, pietist~,
            ministrant~, messdiener~, pfarrer~, pastor~, nonne, monch, orden\\w*, fromm, gottesfurchtig, spirituell,
            ausgetreten, katholisch, evangelisch, protestantisch, christ, christin, muslim~, moslem, judisch, jude,
            judin, buddhist~, hindu, atheist~, agnostik~, glaubig, religios, getauft, konfirmiert, konvertiert,
            orthodox, freikirchlich, zeug\\w+ jehovas""",
        "my": """kirchengemeinde, pastor~, vikar~, bischof~, beichtvater, rosenkranz, abendgebet, gebete,
            morgengebet, tischgebet, kopftuch, kippa, hauskreis, bibelkreis, schutzengel, gott, moscheegemeinde,
            gebetsteppich, firmpate~, taufpate~, taufspruch, konfirmationsspruch, religiose\\w* \\w+, glaubens\\w+,
            glaube, glauben, religion, kirche, gemeinde, pfarrer~, priester, moschee, synagoge, rabbi~, imam, bibel,
            koran, taufe, konfirmation, kommunion, firmung, gebet""",
        "any": """moschee~, freitagsgebet, muezzin, christ, christin, christen, jude, judin, moslems?, buddhist~,
            glaubig~, kirchgang, beichten, gebeichtet, segnen, heilig~, kreuzgang, pilgern, orthodox~, altar,
            opfergabe, meditier~ (?:\\w+ ){0,3}(?:zen|buddh\\w+|kloster|tempel)\\b, glaube (?:\\w+ ){0,2}an
            (?:nichts|keinen gott|gott|etwas hoheres), kirchenlied~, chor (?:\\w+ ){0,3}kirche, heiligabend (?:\\w+
            ){0,4}kirche, gottlos, unglaubig~, religion, religionsunterricht, hindu~, sikh, jude~, judisch,
            christlich, spirituell~, gebetet, segen, gesegnet, allerheiligen, kommunionkind, konfi\\w*, ministrant~,
            kreuz um den hals, \\w*gebet, \\w*gebete, betete, betet, gott (?:hat|ist|hilft|gibt|sei|segne|schutzt|
            vergibt|weiss)\\b, glaube (?:\\w+ ){0,3}(?:an gott|an allah|an jesus|an ein leben nach|an engel|an das
            karma), glauben (?:\\w+ ){0,3}(?:kann|konnte|verloren|gefunden)\\b, vom glauben, religios, faste,
            fasten, gefastet, fastenzeit, jom kippur, pessach, chanukka, bar mizwa, bat mizwa, rosch haschana,
            schabbat~, zuckerfest, opferfest, hadsch, mekka, kopftuch, kippa, koscher, halal, rosenkranz, heilige
            messe, christmette, abendmahl, ostermesse, osternacht, jakobsweg, lourdes, kerze (?:\\w+ ){0,4}(?:maria|
            kirche|heiligen|gott), kloster~, pfarrer~, pastor, pastorin, priester, vikar~, rabbi~, imam, bibelkreis,
            bibelstunde, jugendkirche, kirchentag, kirchenchor, kirchensteuer, kirchenaustritt, ausgetreten, zeugen
            jehovas, freikirche, sekte, katholisch, evangelisch, orthodox, atheist~, agnostiker~, konfession,
            buddha, zen, dharma, meditationskloster, puja, diwali, hinduis~, hindu, tempel, evangelium, psalm~,
            predigt, taufe, taufen, kommunion, firmung, konfirmation, jesus, heiland, allah, muttergottes, jungfrau
            maria, bete, beten, kirche, kirchen\\w+, gottesdienst, messe, moschee, synagoge, ramadan, sabbat,
            schabbat, an gott, gott sei, koran, bibel, getauft, konfirmiert, konvertiert, pilger~, gottglaubig,
            muslim~, moslem, buddhis~, islam, christentum, judentum, gemeinde, wallfahrt, beichte""",
    },
    "politics": {
        "am": """sozi, roter, schwarzer, linker, rechter, links-?\\w*, rechts-?\\w+, marxist~, anarchist~,
            pazifist~, patriot~, nationalist~, demokrat~, monarchist~, wechselwahler~, nichtwahler~, stammwahler~,
            parteimitglied, genosse, genossin, in der (?:partei|spd|cdu|csu|fdp|afd|linken|gewerkschaft|svp|ovp|fpo|
            spo), bei den (?:grunen|linken|jusos|piraten), stadtrat~, gemeinderat~, ortsvorsteher~, wahlhelfer~,
            gegen (?:die regierung|den krieg|waffenlieferungen|zuwanderung|atomkraft|die eu), konservativ~,
            liberal~, sozialist~, kommunist~, feminist~, aktivist~, links, rechts, grun, sozialdemokrat~, mitglied
            der (?:spd|cdu|csu|fdp|afd|grunen|linken|partei), gewerkschaft~, fur abtreibung, gegen abtreibung""",
        "my": """wahlkreis, stimme, ortsverband, kreuz bei, kreuzchen, parteibuch, ortsverein, wahlkampf,
            betriebsrat, abgeordnete~, partei, politische\\w* \\w+, gewerkschaft, stimme bei""",
        "any": """ausgetreten aus der (?:cdu|spd|fdp|afd|partei), streike, gewerkschaft~, wahlhelfer~, nichtwahler~,
            wahlzettel, protest~ gegen, boykottier~, burgerinitiative, rechtsruck, klimakrise, gerechtigkeit,
            umverteilung, enteign~, vermieter (?:\\w+ ){0,3}enteignen, kanzler, oppositio~, koalition, demokratie,
            die reichen, reiche\\w? (?:\\w+ ){0,3}steuern, mehr steuern, hohere steuern, steuern (?:\\w+
            ){0,3}(?:senken|erhohen), wahle (?:\\w+ ){0,4}partei, keine partei, die parteien, politisch\\w*,
            wahlplakat~, wahlprogramm, infostand, flugblatt~, burgermeister~, ortsgruppe, parteitag, mindestlohn,
            grundeinkommen, burgergeld (?:\\w+ ){0,3}(?:abschaffen|kurzen), auslander~, gefluchtete~, fluchtling~,
            migration, asyl~, klimaschutz, klimademo, klimastreik, feminis~, rassis~, nazis?, staat (?:\\w+
            ){0,3}(?:soll|muss|sollte), nato, die eu, der eu, bundeswehr, wehrpflicht, gegen (?:\\w+ )?(?:krieg|
            regierung|rechts|links|nazis|kapitalismus), \\w*wahl (?:\\w+ ){0,8}(?:gewahlt|kreuz|stimme|gehe)\\b,
            bundestagswahl, landtagswahl, kommunalwahl, europawahl, stichwahl, wahlurne, wahllokal, briefwahl,
            wahlen, kreuz (?:\\w+ ){0,4}bei, stimme fur, gestimmt, abgestimmt, volksbegehren, volksentscheid,
            burgerbegehren, unterschriften (?:\\w+ ){0,3}fur, \\w*demo, demos, montagsdemo, kundgebung, streik,
            streiken, gestreikt, mahnwache, sitzblockade, blockade, klimakleber~, fridays for future, letzte
            generation, antifa, pegida, querdenker~, eingetreten in die, in die (?:spd|cdu|csu|fdp|afd|partei|
            gewerkschaft|linke), aus der (?:spd|cdu|csu|fdp|afd|partei|gewerkschaft|linken), bsw, bei den grunen,
            fur die grunen, (?:den|die) grunen (?:gewahlt|beigetreten|mitglied), grunen (?:wahle|gewahlt), svp, ovp,
            fpo, spo, linkspartei, die den den ampel~, kanzler~, minister~, bundesprasident~, landtag, gemeinderat,
            ortsbeirat, abgeordnete~, politiker~, politisch~, merkel, scholz, merz, habeck, baerbock, lindner,
            weidel, hocke, wagenknecht, soder, trump, putin, biden, macron, orban, erdogan, brexit, eu-austritt,
            asylpolitik, fluchtlingspolitik, migrationspolitik, klimapolitik, zuwanderung, einwanderung, abschieb~,
            waffenlieferung~, atomkraft, tempolimit, vermogenssteuer, kapitalismus, sozialismus, kommunis~,
            faschis~, rechtsextrem~, linksextrem~, gewahlt, wahlen gehen, wahle, demo, demonstr~, kandidier~,
            regierung~, partei, spd, cdu, csu, fdp, afd, die der die linke, politisch, politik, petition, stadtrat,
            bundestag, wahlkampf, bundeskanzler~, abtreibung, wahl""",
    },
    "sexuality": {
        "am": """lesbe, schwuler, heterosexuell~, demisexuell, aromantisch, ungeoutet, transfrau, transmann,
            transident, intersexuell, nicht monogam, polyamor~, fremdgegangen, untreu, noch jungfrau, sexuell \\w+,
            devot, dominant im bett, swinger~, auf (?:beide|manner|frauen), schwul, lesbisch, bi, bisexuell,
            hetero~, homosexuell, asexuell, pansexuell, queer, trans, transgender, nichtbinar, nonbinar,
            nicht-binar, jungfrau, geoutet, impotent""",
        "my": """liebhaber~, geliebte, geliebter, orientierung, erstes mal, erste nacht, coming-out, fetisch,
            sexpartner~, sextoy, vibrator, offene\\w* (?:beziehung|ehe), jungfraulichkeit, seitensprung, verhutung,
            sexualitat, sexleben, outing, geschlechtsidentitat, sexuelle \\w+, affare, pronomen, libido, pille""",
        "any": """verliebe? mich (?:\\w+ )?in (?:frauen|manner)\\b, (?:etwas|was|nie was) mit (?:einer|einem)
            (?:frau|mann)\\b, mit (?:frauen|mannern) (?:geschlafen|zusammen|sex)\\b, auf manner stehe, auf frauen
            stehe, verliebt in (?:eine frau|einen mann|meine beste freundin|meinen besten freund), coming-out,
            outen, outing, frau (?:\\w+ ){0,3}gekusst, schlafen (?:\\w+ ){0,3}(?:nicht mehr )?miteinander,
            zweisamkeit im bett, liebesleben, verhutungsmittel, asexuell, (?:mann|frau|freund|freundin) (?:\\w+
            ){0,4}betrogen, zum ersten mal mit (?:einer frau|einem mann), verliebt in eine frau, lust auf (?:ihn|
            sie|frauen|manner), sexlos~, kein verlangen, verlangen nach, rumgemacht, orgasmus, erregung,
            nackt~bilder, affaren, geliebten?, mit (?:einem|einer|anderen) (?:\\w+ )?(?:geschlafen|ins bett), auf
            (?:beide|beides), ans andere ufer, homo, transition, geschlecht~, als (?:frau|mann) (?:\\w+ )?(?:lebe|
            leben|fuhle)\\b, regenbogenfamilie, gleichgeschlechtlich~, sex, \\w+sex, sexleben, sexspielzeug,
            sexuell~, sexualitat, homosexuell~, pansexuell, bisexuell~, queer, polyamor~, offene\\w* (?:beziehung|
            ehe), swinger~, seitensprung, seitensprunge, fremdgehen, fremdgeht, ging affare, verhaltnis mit,
            vibrator, dildo, potenz~, viagra, libido, lustlos~, keine lust (?:mehr )?auf sex, fetisch, bdsm,
            sm-\\w+, fesselspiel~, (?:steh|stehe|stehen) (?:\\w+ ){0,3}auf (?:\\w+ ){0,2}(?:manner|frauen|madchen|
            jungs|beide), (?:liebe|mag|begehre|kusse|gekusst) (?:\\w+ ){0,2}(?:manner|frauen)\\b, (?:manner|frauen)
            (?:liebe|mag|begehre)\\b, (?:im|ins) bett (?:\\w+ ){0,6}(?:lauft|nichts|tote hose|klappt|landen|
            gelandet|mit)\\b, miteinander geschlafen, geschlafen miteinander, (?:mit|zusammen) (?:\\w+
            ){0,3}(?:geschlafen|schlafen|schlafe)\\b, nacht (?:\\w+ ){0,2}verbracht, erste nacht, intim~,
            zartlichkeit, nicht mehr angefasst, kuschelsex, selbst ?befriedigung, onanier~, masturb~, pornos?,
            erotik~, erotisch, prostituierte~, bordell, puff, callgirl, escort, tinder, grindr, one-night-stand~,
            schwulen\\w*, schwule\\w*, lesben\\w*, lesbe, christopher street day, csd, pride, trans, nichtbinar,
            non-binar, geschlechtsangleich~, testosteron, ostrogen, spirale, pille danach, kondome, tripper,
            chlamydien, syphilis, hpv, jungfrau, die pille, kondom~, verhut~, betrogen, fremdgegangen, fremdgehe,
            affare, one-night-stand, geoutet, schwul, lesbisch, bisexuell, transgender, porno~, orgasm~, erektion~,
            mit \\w+ geschlafen, auf manner, auf frauen, mit \\w+ ins bett, selbstbefriedig~, hormone""",
    },
    "location": {
        "am": """unterwegs (?:in|nach), gemeldet in, wohnhaft, in \\w+ gemeldet, daheim, zuhause, in urlaub, im
            urlaub, weggezogen, hergezogen, hingezogen, angekommen in, gestrandet, im hotel, in der pension, im
            ferienhaus, auf dem weg nach, aufgewachsen in, geboren in, in \\w+ geboren, in \\w+ aufgewachsen, zu
            hause, umgezogen, gezogen, gleich da""",
        "my": """hof, bauernhof, wohnheim, zimmer in, altbau~, mietwohnung, eigentumswohnung, hauschen, hutte,
            garten liegt, haustur, stadtteil, kiez, hotel, ferienwohnung, nachbarhaus, stammcafe, stammkneipe,
            lieblingscafe, zweitwohnsitz, heimatdorf, wohngegend, hausnummer, umzug, klingel, adresse, anschrift,
            wohnung, haus, strasse, postleitzahl, plz, heimat, heimatstadt, wohnort, dorf, ferienhaus,
            nachbarschaft, viertel, standort, geburtsort""",
        "any": """(?:auf|in) der messe in, haus in, wohnung in, zimmer in, ferienhaus in, (?:komme|kommen) (?:\\w+
            )?(?:aus|von), (?:bin|sind) (?:\\w+ ){0,4}bis (?:sonntag|montag|dienstag|mittwoch|donnerstag|freitag|
            samstag|morgen|ende), hier in, stadtrand, (?:zug|bus|flieger|bahn|ice|fahre|fahrt|flug|auto) nach,
            unterwegs, (?:in|aus) der nahe von, nachbarort, um die ecke, (?:bin|sind|ist) (?:\\w+ ){0,3}(?:am
            bahnhof|am flughafen|im hotel|im zug|im bus|am gleis|zuhause|daheim|zu hause)\\b, pendle, pendeln, mein
            arbeitsweg, wg, ferienwohnung, zweitwohnung, haus (?:gekauft|gebaut|gemietet)\\b, wohnung (?:gekauft|
            gemietet|gefunden|genommen)\\b, (?:urspru\\w+ |eigentlich )aus, aus \\w+ (?:gezogen|weggezogen|
            hergezogen), hausnummer, wohnt, wohnte, wohnst, wohnhaft, zog (?:\\w+ ){0,4}(?:nach|in), gezogen nach,
            nach \\w+ (?:\\w+ )?(?:gezogen|umgezogen|ausgewandert), weggezogen, hergezogen, ausgewandert,
            eingezogen, \\w+(?:strasse|str\\.|weg|allee|platz|gasse|ring|damm|ufer) (?:nr\\.? )?\\d+, (?:im|in der|
            am) (?:\\w+ )?(?:\\w+stock|dachgeschoss|erdgeschoss|altbau), gemeldet, untergebracht, ubernachte,
            ubernachten, gemietet in, miete (?:\\w+ ){0,3}in \\w+, (?:leben|lebe) (?:\\w+ ){0,4}(?:auf einem|am
            rand|in der nahe), (?:lebe|leben|wohne|wohnen) (?:\\w+ )?(?:in|auf|am|bei|an), wohne, wohnen, gewohnt,
            (?:ich|wir) leben? (?:\\w+ ){0,2}in, lebe (?:ich )?(?:\\w+ ){0,2}in, adresse, umgezogen, aufgewachsen,
            geboren, komme (?:\\w+ )?aus, stamme (?:\\w+ )?aus, postleitzahl, \\w+(?:strasse|weg|allee|platz) \\d+,
            (?:bin|sind) (?:gerade|jetzt|heute|momentan|derzeit) (?:in|auf|an|am|im), (?:fahre|fliege|reise|ziehe)
            (?:\\w+ ){0,3}nach, ziehe (?:\\w+ ){0,3}um, zu hause, unterwegs nach, urlaub in""",
    },
    "family": {
        "am": """schwager, onkel, tante, patentante, patenonkel, geschwister, waise, stiefmutter, stiefvater,
            pflegemutter, pflegevater, verwandt, ledig, frisch verheiratet, eltern, grosseltern, papa, mama, die
            (?:\\w+ )?(?:jungste|alteste|zweitalteste), der (?:\\w+ )?(?:jungste|alteste|zweitalteste), schwestern,
            bruder, in scheidung, single, verheiratet, geschieden, verwitwet, verlobt, alleinerziehend, adoptiert,
            einzelkind, getrennt, mutter, vater, witwe~, grossmutter, grossvater, oma, opa, zwilling, schwanger""",
        "any": """(?:unser|unsere|mein|meine) (?:kleine|kleiner|grosse|grosser|jungste|jungster|alteste|
            altester)\\b, halbbruder, halbschwester, einzelkind, familienvater, schwanger mit, babyzimmer, hochzeit,
            standesamt, geschwister, zwillinge, drillinge, pflegekind~, patenkind, enkel~, schwieger\\w+, (?:hab|
            habe|haben|hatte) (?:\\w+ ){0,4}(?:kinder|tochter|bruder|schwestern|madchen|jungs|buben|enkel~|neffen|
            nichten|cousins), geschieden, getrennt lebend, getrennt von, trennung, ehekrise, ehepaar, eheberatung,
            verlobt, verlobung, antrag gemacht, vater geworden, mutter geworden, oma geworden, opa geworden, unsere?
            ehe, ex-mann, ex-frau, exmann, exfrau, jugendamt, unterhalt, umgangsrecht, familienfeier,
            familientreffen, hochzeitstag, patchwork~, adoption, adoptiert, scheiden, scheidung, geheiratet,
            heirate, heiraten, verheiratet, sorgerecht, alleinerziehend, adoptier~, (?:hab|habe|haben|hatte) (?:\\w+
            ){0,3}(?:kind|kinder|sohn|sohne|tochter|bruder|schwester|schwestern|geschwister|enkel), grosseltern,
            familie""",
        "my": _KIN
        + """, kleine\\w? (?=ist|hat|kommt|wird|war|geht|schlaft), grosse\\w? (?=ist|hat|kommt|wird|war|geht|zieht),
            kinder, exfrau, exmann, nachname, madchenname, kindheit, familien\\w+, jungster, altester, jungste\\w?,
            alteste\\w?, kleine\\w? (?:bruder|schwester), grosse\\w? (?:bruder|schwester), patenkind, pflegekind~,
            adoptiv\\w+, halbbruder, halbschwester, uroma, uropa, ur\\w+, mutti, vati, papi, mami, omi, opi, ex,
            ex-\\w+, freund, freundin, partner~, lebensgefahrt~, zwillinge, drillinge, jungs, madels, nachwuchs,
            verwandt~, ehe, hochzeitstag, trauzeuge, schwieger\\w+, enkelkind~, stamm ?baum""",
    },
    "work": {
        "am": """erwerbslos, auf jobsuche, auf arbeitssuche, arbeitssuchend, in probezeit, in altersteilzeit, auf
            montage, auf schicht, im dienst, im schichtdienst, im buro, in der arbeit, auf arbeit, in mutterschutz,
            in der ausbildung, im aussendienst, werkstudent~, student~, verbeamtet, versetzt worden, festangestellt,
            befristet, teilzeit~, minijobber~, \\w+(?:fahrer|fahrerin|verkaufer|verkauferin|arbeiter|arbeiterin|
            meister|meisterin|leiter|leiterin|pfleger|pflegerin|lehrer|lehrerin|techniker|technikerin|ingenieur|
            ingenieurin|berater|beraterin|assistent|assistentin|helfer|helferin|kauffrau|kaufmann|bauer|macher|
            macherin|schlosser|bauerin|beamter|beamtin|angestellte|angestellter|entwickler|entwicklerin|therapeut|
            therapeutin|arzt|arztin|anwalt|anwaltin|fuhrer|fuhrerin|schwester), \\w+(?:ologe|ologin|ist|istin|iker|
            ikerin) (?:in|bei|an|von beruf), von beruf, arzt, arztin, bibliothekar~, sekretar~, kassierer~,
            dolmetscher~, ubersetzer~, autor~, schriftsteller~, redakteur~, fotograf~, kunstler~, schauspieler~,
            winzer~, landwirt~, maurer~, dachdecker~, schlosser~, schweisser~, klempner~, installateur~, zimmermann,
            florist~, postbote, brieftrager~, putzfrau, reinigungskraft, pilot~, stewardess, feuerwehrmann,
            sanitater~, notar~, makler~, steuerberater~, controller~, grafiker~, informatiker~, physiker~,
            chemiker~, biolog~, sozialarbeiter~, logopad~, physiotherapeut~, kindergartner~, tagesmutter,
            altenpfleger~, rektor~, schulleiter~, dozent~, personaler~, manager~, vorarbeiter~, lagerist~,
            kosmetiker~, arbeitslos, selbststandig, selbstandig, freiberuf~, angestellt, beamt~, rentner~,
            pensioniert, gekundigt, befordert, entlassen, in elternzeit, in kurzarbeit, lehrer~, ingenieur~,
            krankenpfleger~, krankenschwester, anwalt, anwaltin, entwickler~, programmierer~, verkaufer~, koch,
            kochin, kellner~, handwerker~, elektriker~, bauer, journalist~, polizist~, architekt~, erzieher~,
            buchhalter~, berater~, azubi, praktikant~, chef, chefin, geschaftsfuhrer~, professor~, wissenschaftler~,
            designer~, optiker~, friseur~, tischler~, schreiner~, maler~, backer~, metzger~, gartner~, hausmeister~,
            fahrer~, schneider~, techniker~, apotheker~, hebamme, richter~, musiker~, trainer~, soldat~,
            mechaniker~, im homeoffice, in rente, pfleger~""",
        "my": """vorgesetzter, betrieb, betriebsrat, filiale, laden, werkstatt, praxis, kanzlei, buro, schreibtisch,
            dienst, dienstplan, schichtplan, probezeit, kundigung, kundigungsfrist, nebenjob, minijob, lehre,
            lehrstelle, lehrjahr, umschulung, weiterbildung, meister~, azubi~, chefin, geschaftspartner~,
            auftraggeber~, feierabend, uberstunden, urlaubstage, elternzeit, homeoffice, dienstwagen, rente beginnt,
            zeugnis, lebenslauf, vorstellungsgesprach, arbeits\\w+, berufs\\w+, stammkunden, schuler, patienten,
            chef~, vorgesetzte~, kollege, kollegen, kollegin~, arbeit, arbeitgeber~, arbeitsplatz, job, jobs, beruf,
            firma, kunde~, abteilung, bewerbung~, karriere, stelle, arbeitsvertrag, vertrag, mitarbeiter~,
            praktikum, ausbildung, team, schicht, unternehmen""",
        "any": """vertrag (?:\\w+ ){0,3}(?:verlangert|ausgelaufen|lauft aus|unterschrieben)\\b, fange (?:\\w+
            ){0,4}bei \\w+ an, angefangen bei, bei \\w+ (?:angefangen|angestellt|gearbeitet)\\b, arbeite bei,
            probetag, einarbeitung, berufsleben, dienstreise, betriebsrente, projektleiter~, teamleiter~, feste\\w?
            stelle, festanstellung, praktikant~, schichtleiter~, kundin, kunden, lohnarbeit, im dienst, auf arbeit,
            zur arbeit, von der arbeit, bei der arbeit, auf der arbeit, arbeiten (?:gehe|muss|gegangen)\\b, leite
            (?:\\w+ ){0,4}(?:\\w+handlung|\\w*geschaft|\\w*laden|\\w*betrieb|\\w*team|\\w*abteilung|\\w*filiale|
            hotel|projekt|schule|praxis)\\b, intensivstation, bei der (?:bahn|post|polizei|feuerwehr|stadt|
            bundeswehr|sparkasse|bank), im (?:krankenhaus|buro|homeoffice|einzelhandel|callcenter|call-center|
            kindergarten|supermarkt|baumarkt) (?:\\w+ )?(?:arbeite|tatig|angestellt|angefangen)\\b, arbeitet (?:\\w+
            ){0,2}(?:als|bei|in|im), suche (?:\\w+ ){0,4}(?:job|arbeit|stelle|ausbildungsplatz)\\b, (?:neuer|alter|
            neuen|alten|ersten) job, jobwechsel, dienst, schichtplan, spatdienst, fruhdienst, wochenenddienst,
            stelle als, (?:chef|chefin|kollege|kollegin|kunde|kundin) (?:\\w+ ){0,3}(?:hat|will|sagt|meint|ist),
            arbeitstag, arbeitsvertrag, berufsunfahig, krankenschwester, selbstandigkeit, eigene\\w? (?:laden|firma|
            praxis|geschaft|werkstatt|unternehmen), gehaltserhohung, teilzeit, vollzeit, arbeitszeugnis, abmahnung,
            betriebsausflug, weihnachtsfeier der firma, lehrgang, fortbildung, meisterschule, gekundigt, kundigung,
            kundigungsfrist, aufhebungsvertrag, probezeit, entlassen, entlassung, fruhschicht, spatschicht,
            nachtdienst, schichtdienst, wechselschicht, tagschicht, schicht, rufbereitschaft, bereitschaftsdienst,
            umschulung~, lehrjahr, lehrstelle, gesellenprufung, meisterprufung, ausgelernt, buro, grossraumburo,
            arbeitgeber~, arbeitsamt, arbeitsagentur, arbeitsplatz, arbeitszeit~, arbeitskolleg~, vorgesetzte~,
            chef, chefin, kollegin~, belegschaft, betriebsrat, filiale, firma, (?:an|hinter) der (?:kasse|theke|
            maschine), am fliessband, im lager, auf dem bau, auf der baustelle, auf station, im aussendienst, in der
            fabrik, im werk, stammkunden, meine\\w? kunden, kundengesprach, teammeeting, personalgesprach,
            mitarbeitergesprach, abteilung, abteilungsleit~, teamleit~, leitung der, befordert, beforderung,
            gehaltsverhandlung, stellenanzeige, jobangebot, jobsuche, probearbeiten, zusage (?:\\w+ ){0,3}(?:stelle|
            job), stelle (?:\\w+ ){0,3}(?:als|bei|bekommen|angetreten|gefunden)\\b, neuen? stelle, arbeite\\w*
            (?:\\w+ ){0,3}(?:als|bei|in|im|an|fur), gearbeitet, jobbe, gejobbt, kellnere, kellnern, unterrichte~,
            putze (?:\\w+ ){0,3}(?:buros|wohnungen|hauser|hotel~), fahre (?:\\w+ ){0,2}(?:taxi|lkw|bus|lieferwagen|
            laster|strassenbahn)\\b, leite (?:\\w+ ){0,3}(?:team|abteilung|filiale|laden|schule|kita|gruppe)\\b,
            fuhre (?:\\w+ ){0,3}(?:laden|geschaft|betrieb|firma|cafe|restaurant|friseursalon|salon|praxis)\\b,
            (?:laden|geschaft|firma|cafe|restaurant|salon|praxis|agentur|unternehmen|backerei|werkstatt)
            (?:eroffnet|aufgemacht|gegrundet|ubernommen|ubernehme|fuhre)\\b, gegrundet, selbstandig gemacht,
            selbststandig gemacht, krank gemeldet, krankgemeldet, in rente gegangen, in rente gehe, verrentet, in
            pension, ruhestand, elternzeit, mutterschutz, minijob, nebenjob, werkvertrag, zeitarbeit, leiharbeit~,
            kurzarbeit, berufsschule, berufstatig, (?:ich|wir) arbeiten?, arbeite, kundige, vorstellungsgesprach,
            bewerb~, beworben, ausbildung, praktikum, nachtschicht, uberstunden, neuen job, arbeitslos, jobcenter,
            homeoffice, (?:in|als) teilzeit, selbststandig, kollegen, feierabend""",
    },
}
"""By topic: the kinds of terms, each with its terms."""
