"""English words of the topics that a person may never have remembered. See `store.text.topics` for the kinds.

`~` stands for any letters. Terms also match with an ending of the plural.
"""

from collections.abc import Mapping
from typing import Final

_ILLNESSES = """diabetes, diabetic, cancer, tumor, tumour, leukemia, leukaemia, lymphoma, melanoma, chemo~, asthma~,
epileps~, epileptic, arthritis, migraine, insomnia, adhd, autis~, autistic, bipolar, ptsd, ocd, anorexi~, bulimi~,
eating disorder, anxiety disorder, panic attack, panic disorder, depression, dementia, alzheimer~, parkinson~, hiv,
hepatitis, herpes, covid, coronavirus, pneumonia, bronchitis, tuberculosis, influenza, the flu, multiple sclerosis,
fibromyalgia, lupus, crohn~, colitis, celiac, coeliac, eczema, psoriasis, hypertension, high blood pressure,
blood pressure, blood sugar, cholesterol, thyroid, heart attack, heart disease, stroke, aneurysm, seizure, anemia,
anaemia, osteoporosis, endometriosis, menopause, miscarriage, infertil~, ivf, kidney stone, gallstone, hernia,
scoliosis,
concussion, slipped disc, sciatica, tinnitus, vertigo, glaucoma, cataract, food poisoning, burnout, allergy,
allergies,
allergic reaction, hay fever, lactose intolerant, gluten intolerant, alcoholism, addiction, overdose, withdrawal"""
_TREATMENTS = """surgery, operation, biopsy, mri, ct scan, x-ray, ultrasound, blood test, checkup, check-up, vaccin~,
prescription, medication, meds, antidepressant, antibiotic, antihistamine, painkiller, insulin, metformin, ibuprofen,
statin, beta blocker, inhaler, injection, infusion, dialysis, transfusion, transplant, pacemaker, hearing aid,
wheelchair, crutch, crutches, prosthe~, physical therapy, physio~, psychotherap~, psychiatr~, rehab, detox, hospital,
emergency room, icu, clinic, prozac, zoloft, xanax, ritalin, adderall, lithium, steroid, vaccine"""
_BODY = """back, knee, shoulder, neck, hip, ankle, wrist, elbow, foot, feet, leg, arm, chest, stomach, head, heart,
throat, tooth, teeth, ear, eye, eyes, skin, lung, lungs, liver, kidney, kidneys, muscle, joint, joints, hand, hands,
finger, toe, jaw, spine, belly, gut, sinus, sinuses"""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "health": {
        "am": """allergic, pregnant, sick, ill, depressed, suicidal, sober, an alcoholic, a recovering alcoholic,
            addicted, disabled, deaf, blind, short-sighted, nearsighted, overweight, obese, underweight, infertile,
            injured, hospitali~, diagnosed, vaccinated, contagious, feverish, nauseous, dizzy, insulin, intolerant,
            infected, bedridden, burned out, burnt out, in rehab, in therapy, on medication, on meds,
            on antidepressants,
            on antibiotics, on sick leave, positive for, hurting, in pain, operated on, """
        + _ILLNESSES,
        "my": """doctor, physician, gp, therapist, psychiatrist, psychologist, dentist, dermatologist, cardiologist,
            oncologist, neurologist, gynecologist, gynaecologist, surgeon, physio, midwife, symptom, diagnosis,
            illness,
            disease, condition, disability, blood pressure, blood sugar, blood type, cholesterol, bmi, weight, period,
            pregnancy, due date, hearing, eyesight, mental health, health, immune system, cast, injury, fever,
            cough, rash, test results, blood work, lab results, treatment, therapy, dose, dosage, pills, pill,
            insomnia,
            sleep, appetite, health insurance, doctor's appointment, """
        + _TREATMENTS
        + ", "
        + _ILLNESSES,
        "have": """fever, temperature, cold, cough, sore throat, rash, pain, headache, toothache, backache,
            stomach ache,
            stomachache, nausea, cramps, disability, illness, disease, condition, infection, virus, injury, symptom,
            baby bump, allergy, pill, pills, mg, doctor's appointment, appendix, """
        + _TREATMENTS
        + ", "
        + _ILLNESSES,
        "i": f"""diagnosed with, suffer~ from, hospitali~, vaccinated, got vaccinated, tested positive,
            tested negative,
            threw up, throwing up, vomit~, faint~, passed out, relaps~, overdos~, miscarried,
            (?:broke|broken|sprain~|fractur~|tore|torn|twisted|dislocat~|injur~|hurt) my (?:\\w+ )?(?:{_BODY}),
            lost (?:\\w+ ){{0,2}}(?:kilos|pounds|kg|weight), gained (?:\\w+ ){{0,2}}(?:kilos|pounds|kg|weight),
            (?:quit|stopped|gave up) (?:drinking|smoking|alcohol), (?:can't|cannot|couldn't|can not) (?:sleep|
            breathe|walk),
            sle(?:ep|pt) (?:badly|poorly), see(?:ing)? (?:a|my) (?:therapist|psychologist|psychiatrist|doctor|
            specialist),
            saw (?:a|my) (?:therapist|psychologist|psychiatrist|doctor|specialist), went to the (?:doctor|er|
            hospital|dentist),
            going to the (?:doctor|er|hospital|dentist), go to therapy, in therapy, on medication,
            self-harm~, hurt myself, kill myself""",
        "about": f"""my (?:\\w+ )?(?:{_BODY}) (?:\\w+(?:'\\w+)? ){{0,3}}(?:hurt~|ach~|pain~|killing|swollen|sore|
            broken|bleed~|infected|gone|worse)""",
        "any": f"""(?:{_BODY}) (?:trouble|problem|issue|surgery|operation|injury|pain), mg of, milligrams of,
            sleepless, sleeping pills, chemotherapy, breast cancer, reading glasses""",
    },
    "money": {
        "am": """broke, in debt, bankrupt, overdrawn, behind on my rent, behind on the rent, behind on my bills,
            behind on payments, a millionaire, paid, underpaid, on benefits, on welfare, on food stamps, insolvent,
            paying off (?:my|our|the|a), saving up, saving for""",
        "my": """salary, wage, wages, income, paycheck, pension, savings, debt, debts, mortgage, rent, loan, loans,
            credit card, debit card, credit score, bank, bank account, account, budget, taxes, tax return, portfolio,
            investments, investment, shares, stocks, 401k, ira, net worth, inheritance, alimony, child support, bonus,
            bills, overdraft, iban, account number, finances, money, student loan, insurance premium""",
        "have": """debt, debts, savings, mortgage, loan, loans, credit card, overdraft, in the bank, in savings,
            unemployment benefits, benefits, welfare, stipend, raise, bonus, pension, inheritance, shares, stocks,
            bonds,
            bitcoin, crypto, index fund, money, student loans, tax refund, financial problems, money problems""",
        "i": r"""earn~, (?:make|made|get|got) (?:\w+ ){0,2}[$€£]?\d[\d,.]*k?\b, owe~, owing, borrow~, invest(?:ed|
            ing)? (?:in|[$€£]?\d[\d,.]*),
            (?:can't|cannot|couldn't|can not|can barely|could not) (?:\w+ )?afford, inherit~,
            save (?:\w+ )?[$€£]?\d[\d,.]*,
            filed for bankruptcy, went bankrupt, took out a (?:\w+ )?(?:loan|mortgage), pay(?:ing)? (?:off|
            back) (?:my|our|the|a|some), put [$€£]?\d[\d,.]*,
            spen(?:d|t) (?:\w+ ){0,3}[$€£]?\d[\d,.]*, lost (?:\w+ ){0,4}(?:money|savings), bank with, lent,
            refinanc~""",
        "about": r"""(?:owes|owe|wants|paid|pays|lent) (?:me|us) (?:\w+ ){0,2}[$€£]?\d[\d,.]*, paid off (?:my|our|
            the) \w+""",
        "any": r"""mortgage, credit score, bank account, in savings, tax refund, student loan, bankruptcy, paycheck,
            in cryptocurrency, retirement fund, overdraft, maxed out""",
    },
    "religion": {
        "am": """catholic, protestant, christian, muslim, jewish, a jew, hindu, buddhist, sikh, mormon, orthodox,
            evangelical, baptist, methodist, lutheran, anglican, presbyterian, quaker, agnostic, atheist, an atheist,
            religious, spiritual, pagan, wiccan, baptised, baptized, a believer, observant, devout, a nun, a monk,
            a priest,
            a pastor, an imam, a rabbi, a minister, a deacon, confirmed in church, christened, kosher, fasting,
            praying,
            jehovah's witness""",
        "my": """faith, religion, church, mosque, synagogue, parish, congregation, pastor, priest, rabbi, imam, bible,
            quran, koran, torah, rosary, prayers, prayer, baptism, bar mitzvah, bat mitzvah, first communion,
            confirmation,
            pilgrimage, god, religious beliefs, temple, hijab, kippah, turban, bible study, minister""",
        "have": """faith, hijab, kippah, kippa, turban, bible study, communion, baptism, spiritual""",
        "i": """pray, prayed, praying, prays, convert~ to (?:islam|christianity|judaism|catholicism|buddhism|
            hinduism),
            (?:go|went|going|gone) to (?:\\w+ )?(?:church|mass|mosque|synagogue|temple|confession|bible study),
            believe in (?:god|jesus|allah|christ|heaven|an afterlife), (?:don't|do not|stopped) believ~ in (?:god|
            anything),
            worship~, baptis~, baptiz~, meditate at, keep kosher, keep halal, fast (?:during|for) (?:ramadan|lent|
            yom kippur),
            read (?:\\w+ )?(?:bible|quran|koran|torah|scripture), left (?:\\w+ ){0,2}(?:church|faith),
            sunday school""",
        "about": "god bless us, thank god for saving me",
        "any": """ramadan, shabbat, sabbath, yom kippur, rosh hashanah, hajj, mecca, diwali puja, holy communion,
            bar mitzvah,
            bat mitzvah, bible study, sunday school, god's will, lord and savior""",
    },
    "politics": {
        "am": """republican, democrat, conservative, liberal, socialist, communist, libertarian, anarchist, marxist,
            feminist, activist, left-wing, right-wing, leftist, centrist, progressive, nationalist, pro-choice,
            pro-life,
            politically active, politically, member of the (?:\\w+ )?party, card-carrying, a green, a tory,
            union member,
            union rep, in a union, against abortion, for abortion, against immigration, against gun control,
            for gun control, running for, voting for, an anti-vaxxer, maga""",
        "my": """vote, ballot, party, political views, politics, political beliefs, political opinion, congressman,
            congresswoman, senator, mp, union, political party, activism""",
        "have": """political views, strong opinions about politics""",
        "i": """vote, voted, voting, votes, campaign~, canvass~, protest~, march~ (?:for|against|in|at),
            demonstrat~ (?:for|against), donated (?:\\w+ ){0,4}(?:campaign|party), lean (?:left|right|conservative|
            liberal),
            sign(?:ed)? (?:\\w+ )?petition, ran for (?:office|council|mayor|parliament|congress),
            run(?:ning)? for (?:\\w+ )?(?:office|council|mayor|parliament|congress),
            support~ (?:\\w+ ){0,2}(?:party|trump|biden|brexit|president|government|greens|labour|republicans|
            democrats),
            (?:hate|can't stand|cannot stand|oppose|distrust|trust) (?:\\w+ ){0,3}(?:government|president|party|
            politicians),
            joined (?:\\w+ ){0,2}(?:party|union|protest), believe in (?:socialism|communism|capitalism)""",
        "about": "",
        "any": """brexit, abortion, gun control, immigration policy, election, government, the republicans,
            the democrats,
            trump, biden, senate, parliament, prime minister, political party, demonstration against,
            protest march""",
    },
    "sexuality": {
        "am": """gay, lesbian, bisexual, bi, queer, straight, heterosexual, homosexual, asexual, pansexual,
            polyamorous,
            trans, transgender, a trans (?:man|woman), transitioning, nonbinary, non-binary, genderqueer, genderfluid,
            intersex, closeted, out to, in the closet, a virgin, celibate, kinky, on the pill, impotent,
            sexually active, attracted to, having an affair, in an open relationship, monogamous, aroused, horny,
            into bdsm,
            having sex, lgbt~""",
        "my": """sexuality, sexual orientation, sexual identity, gender identity, sex life, sex drive, libido,
            virginity,
            pronouns, gender, transition, affair, birth control, contraceptive, iud, fetish, kink,
            first time having sex,
            coming out, lover, erection""",
        "have": """sex, affair, one-night stand, threesome, fetish, kink, libido, erectile, orgasm, std, sti, iud,
            birth control,
            contraceptives, open relationship, condom, porn, intercourse""",
        "i": """came out, come out as, coming out (?:to|as), slept with, sleep(?:ing)? with (?:him|her|them|men|
            women|other),
            cheated on, cheating on, hooked up, masturbat~, lost my virginity, watch~ (?:\\w+ ){0,3}porn~,
            identify as (?:\\w+ )?(?:gay|queer|trans~|bi~|straight|lesbian|male|female|a man|a woman),
            attracted to (?:\\w+ )?(?:men|women|guys|girls|him|her|boys), like (?:men|women|girls|boys),
            fall for (?:men|women),
            transitioned, made love, make love""",
        "about": "",
        "any": """lgbt~, transgender, gender identity, sexual orientation, sex life, erectile, grindr,
            tinder hookup, condom,
            one-night stand, porn, morning-after pill, gay, lesbian, bisexual""",
    },
    "location": {
        "am": "",
        "my": """address, home address, street, zip code, zip, postcode, postal code, hometown,
            home town, apartment, flat, house, home country, place of birth, birthplace, coordinates,
            gps, commute, home base""",
        "have": "",
        "i": """liv(?:e|es|ed|ing) (?:\\w+ ){0,4}(?:in|at|on|near|next to), reside in, (?:grew|growing) up (?:in|
            near|on),
            (?:was|were|am|are) (?:born|raised|based|located) (?:and \\w+ )?(?:in|near|at), born in, based in,
            (?:stay|stayed|staying) (?:\\w+ ){0,2}(?:in|at|near) (?:a|an|the|my) (?:\\w+ )?(?:hotel|hostel|airbnb|
            cabin|resort|flat),
            (?:at|in) my (?:\\w+ )?(?:cabin|hotel|apartment|flat), (?:commut~) (?:from|to|by|via)""",
        "about": "",
        "place": """in, at, to, from""",
        "any": """zip code, home address, postal code, \\d+ \\w+ (?:street|avenue|road|lane|boulevard|drive|court),
            (?:flat|apartment|apt|unit|suite) \\d+\\w?""",
    },
    "family": {
        "am": """married, divorced, widowed, a widow, a widower, separated, engaged, adopted, an only child,
            a single mother,
            a single mom, a single mum, a single father, a single dad, a single parent, a mother, a father, a mom,
            a dad,
            a mum, a parent, a grandmother, a grandfather, a grandma, a grandpa, a stepmother, a stepfather, a twin,
            an orphan, an aunt, an uncle, a stay-at-home, getting married, getting divorced, expecting our,
            expecting a""",
        "my": """wife, husband, spouse, ex-wife, ex-husband, fiance, fiancee, son, sons, daughter, kid, child,
            children,
            baby, babies, toddler, newborn, mother, father, mom, mum, dad, mommy, daddy, mama, papa, parents, parent,
            brother, sister, sibling, twin, cousin, aunt, uncle, auntie, niece, nephew, grandmother, grandfather,
            grandma,
            grandpa, granny, grandparents, grandson, granddaughter, grandchild, grandchildren, grandkids, stepmother,
            stepfather, stepmom, stepdad, stepson, stepdaughter, stepbrother, stepsister, half-brother, half-sister,
            in-laws, mother-in-law, father-in-law, brother-in-law, sister-in-law, family, relatives, divorce,
            marriage,
            wedding, custody, folks, youngest, oldest, little ones, fam, ancestors, family tree""",
        "have": """son, sons, daughter, (?:a|one|our) child, kids, children, twins, brother, sister, sibling,
            siblings, stepson,
            stepdaughter, grandchildren, grandkids, custody, wife, husband, family, niece, nephew, cousin, newborn""",
        "i": """married to, got married, get married, getting married, got divorced, get divorced, getting divorced,
            got engaged, adopt(?:ed|ing)? (?:a|our|my|two|three) (?:\\w+ )?(?:girl|boy|child|children|kid|kids|baby|
            son|daughter),
            gave birth, proposed to""",
        "about": "the (?:wife|husband|missus)",
        "any": """custody of, (?<!his )(?<!her )(?<!your )(?<!their )(?:mum|mom|dad|grandma|grandpa)""",
    },
    "work": {
        "am": """unemployed, self-employed, freelance, a freelancer, freelancing, retired, laid off, fired, hired,
            promoted,
            an intern, job hunting, job-hunting, between jobs, out of work, out of a job, on the night shift,
            working on a deadline, a (?:\\w+ )?(?:engineer|teacher|nurse|lawyer|accountant|developer|programmer|
            designer|manager|
            analyst|consultant|waiter|waitress|chef|cook|driver|electrician|plumber|carpenter|mechanic|journalist|
            writer|
            editor|photographer|architect|scientist|researcher|professor|lecturer|student teacher|salesperson|cashier|
            clerk|secretary|assistant|receptionist|pilot|soldier|firefighter|police officer|paramedic|pharmacist|
            veterinarian|
            librarian|translator|illustrator|farmer|baker|barista|bartender|hairdresser|social worker|contractor|
            founder|ceo|
            cto|director|entrepreneur|landlord|realtor|broker|banker|economist|adviser|advisor|optician|porter|guard|
            attendant|tailor|butcher|florist|gardener|
            cleaner|caretaker|nanny|midwife|dentist|doctor|surgeon|therapist|psychologist|judge|officer|sailor|
            postman|
            plasterer|roofer|welder|machinist|technician|beekeeper|actor|actress|musician|singer|dancer|tutor|coach|
            trainer|biologist|chemist|physicist|
            counselor)""",
        "my": """boss, manager, supervisor, colleague, coworker, co-worker, job, jobs, employer, employee,
            employees, company,
            client, clients, customers, career, profession, workplace, office, startup, business, internship, resume,
            cv, contract, shift, team lead, promotion, workload, department, interviewer, store,
            performance review, resignation, work schedule, day job, side hustle, occupation""",
        "have": """job, jobs, job interview, job offer, internship, interview at, meeting with my boss, promotion,
            interview for, employees, night shift, business trip, work trip, gig""",
        "i": """work (?:as|at|for|in|with|from|on the|part|full|nights|night), worked (?:as|at|for|in) (?:a|an|the),
            working (?:as|at|for|from|out of|remotely|full|part|overtime|nights),
            got (?:\\w+ )?(?:fired|laid off|promoted|hired|job|
            the job),
            (?:quit|lost|left|start|started|starting|change|changed|changing|found|landed) (?:\\w+ ){0,2}(?:job|jobs),
            (?:run|own|started|founded|manage|opened|opening|running|starting) (?:\\w+ ){0,3}(?:business|company|
            startup|store|shop|studio|
            firm|bakery|restaurant|agency|team), handed in my notice, resigned, appl(?:y|ied|
            ying) for (?:\\w+ ){0,3}(?:job|position|role|post),
            got a raise, teach at, teach in, (?:teach|taught) (?:\\w+ )?(?:grade|class|classes|school), retired,
            intern(?:ed|ing) at,
            doing an internship, quit (?:my|the|this) (?:job|company|position)""",
        "about": "",
        "any": "job interview, in my office, my shift, at work, day job, laid off",
    },
}
"""By topic: the kinds of terms, each with its terms."""
