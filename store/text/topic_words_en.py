"""English words of the topics that a person may never have remembered. See `store.text.topics` for the kinds.

`~` stands for any letters. Terms also match with an ending of the plural.
"""

from collections.abc import Mapping
from typing import Final

_CLEAR_ILLNESSES = """diabetes, diabetic, cancer, tumor, tumour, leukemia, leukaemia, lymphoma, melanoma, asthma~,
epileps~, epileptic, arthritis, migraine, insomnia, adhd, autis~, autistic, bipolar, ptsd, anorexi~, bulimi~, eating
disorder, anxiety disorder, panic attack, panic disorder, dementia, alzheimer~, parkinson~, hiv, hepatitis, herpes,
pneumonia, bronchitis, tuberculosis, multiple sclerosis, fibromyalgia, crohn~, colitis, celiac, coeliac, eczema,
psoriasis, hypertension, high blood pressure, blood sugar, cholesterol, thyroid, heart attack, heart disease,
aneurysm, seizure, anemia, anaemia, osteoporosis, endometriosis, menopause, miscarriage, infertil~, ivf, kidney
stone, gallstone, hernia, scoliosis, slipped disc, sciatica, tinnitus, glaucoma, food poisoning, allergic reaction,
hay fever, lactose intolerant, gluten intolerant, alcoholism, depression, shingles, gout, anaphyla~, sepsis, angina,
arrhythmia, atrial fibrillation, copd, emphysema, cystic fibrosis, irritable bowel, ibs, acid reflux, stomach ulcer,
gastritis, pancreatitis, cirrhosis, jaundice, kidney failure, fibroid, pcos, polyp, metasta~, malignan~, carcinoma,
sarcoma, myeloma, rheumatism, rheumatoid~, bursitis, tendinitis, tendonitis, carpal tunnel, plantar fasciitis,
whiplash, neuropathy, cerebral palsy, chronic fatigue, chronic pain, long covid, narcolepsy, sleep apnea, sleep
apnoea, hot flush, hot flash, night sweats, palpitations, hypothyroid~, hyperthyroid~, dyslexi~, dyspraxi~,
tourette~, schizophreni~, psychosis, borderline personality, agoraphobi~, claustrophobi~, postnatal depression,
postpartum depression, self-harm, nervous breakdown, mental breakdown, dermatitis, rosacea, acne, conjunctivitis,
tonsillitis, appendicitis, uti, cystitis, incontinen~, constipation, diarrh~, haemorrhoids, hemorrhoids, malaria,
measles, mumps, chickenpox, whooping cough, lyme disease, norovirus, stomach bug, stomach flu, meningitis,
encephalitis, blood clot, thrombosis, embolism, varicose vein, macular degeneration, hearing loss, ectopic,
preeclampsia, gestational diabetes, labour pains, morning sickness, caesarean, c-section, prostate, hysterectomy,
mastectomy, vasectomy, amputation, bulimic, anorexic, panic attacks, anxiety attack, suicidal thoughts, heart
murmur, heart failure, high cholesterol, low iron, vitamin deficiency, nut allergy, peanut allergy"""
_ILLNESSES = f"""{_CLEAR_ILLNESSES}, addiction, allergies, allergy, blood pressure, burnout, cataract, chemo~,
concussion, coronavirus, covid, influenza, lupus, ocd, overdose, stroke, the flu, vertigo, withdrawal"""
_MEDICINES = r"""\w{2,}(?:pril|olol|statin|sartan|prazole|conazole|cillin|mycin|oxetine|traline|pram|azepam|zolam|
azepine|azodone|gliptin|tidine|profen|triptan|gabalin|pentin|apine|peridone|peridol|thiazide|semide|formin|glutide|
xaban|dogrel|ciclovir|cyclovir|setron|dronate|thyroxine|phylline|phenidate|amfetamine|amphetamine|trigine|zumab|
limumab|ximab|tinib), heparin, warfarin, aspirin, paracetamol, acetaminophen, tylenol, codeine, morphine, tramadol,
oxycodone, fentanyl, naproxen, diclofenac, cortisone, prednisone, prednisolone, valium, ozempic, wegovy, mounjaro,
lexapro, cymbalta, wellbutrin, seroquel, concerta, epipen, hrt, ventolin, melatonin, methadone, nicotine patch,
blood thinner, diuretic, laxative, antacid, sedative, tranquilli~, anaesthetic, opioid, sleeping tablet, blood
pressure tablet, antipsychotic, mood stabili~, prozac, zoloft, xanax, ritalin, adderall, insulin, metformin,
ibuprofen, antidepressant, antihistamine, beta blocker"""
_TREATMENTS = (
    """surgery, operation, biopsy, mri, ct scan, x-ray, ultrasound, blood test, checkup, check-up, vaccin~,
        prescription, medication, meds, antidepressant, antibiotic, antihistamine, painkiller, insulin, metformin,
        ibuprofen, statin, beta blocker, inhaler, injection, infusion, dialysis, transfusion, transplant, pacemaker,
        hearing aid, wheelchair, crutch, crutches, prosthe~, physical therapy, physio~, psychotherap~, psychiatr~,
        rehab, detox, hospital, emergency room, icu, clinic, prozac, zoloft, xanax, ritalin, adderall, lithium,
        steroid, vaccine, colonoscopy, endoscopy, mammogram, physical therapist, radiotherapy, radiation therapy,
        hip replacement, knee replacement, bypass, stent, catheter, stoma, root canal, dentures, insulin pump,
        walking frame, hospice, counselling, rehabilitation, drip, plaster cast, contact lenses, """
    + _MEDICINES
)
_BODY = (
    "back|knee|shoulder|neck|hip|ankle|wrist|elbow|foot|feet|leg|arm|chest|stomach|head|heart|throat|"
    "tooth|teeth|ear|eye|eyes|skin|lung|lungs|liver|kidney|kidneys|muscle|joint|joints|hand|hands|"
    "finger|toe|jaw|spine|belly|gut|sinus|sinuses"
)

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "health": {
        "am": """on the spectrum, breathless, terminal, terminally ill, cancer-free, in agony, on crutches, on the
            mend, on \\w+ (?:medication|tablets|therapy|injections), on the pill for, in labour, deaf in, blind in,
            allergic, going through (?:menopause|chemo|withdrawal|ivf|a depression), waiting for (?:\\w+
            ){0,3}(?:results|surgery|operation|scan|diagnosis|biopsy|transplant), on (?:\\w+ ){0,2}(?:waiting list|
            transplant list), born with, born deaf, born blind, unable to (?:walk|sleep|eat|stand|breathe|see|hear),
            in a (?:wheelchair|coma|sling|cast), off sick, covered in (?:a )?(?:rash|spots|hives|bruises), losing
            weight, gaining weight, having (?:\\w+ ){0,3}(?:pains?|attacks?|treatment|contractions|surgery|trouble
            (?:breathing|sleeping|walking)), ovulating, in menopause, menopausal, anaemic, anemic, dehydrated,
            underweight, going to therapy, seeing a \\w+ologist, seeing a (?:doctor|specialist|shrink|counsellor),
            sectioned, self-harming, drinking again, drinking too much, hungover, addicted, shaky, faint,
            light-headed, lightheaded, out of breath, short of breath, unwell, poorly, under the weather, wheezing,
            queasy, manic, psychotic, clean and sober, a recovering ~, in recovery, in remission, in labor, in
            hospital, in the hospital, hard of hearing, colour-blind, color-blind, colorblind, partially sighted,
            visually impaired, neurodivergent, on dialysis, on a drip, on insulin, on hrt, on blood thinners, on
            painkillers, on the waiting list for, on steroids, off my meds, having a baby, (?:\\w+ )?(?:weeks|
            months) pregnant, breastfeeding, trying to conceive, going blind, going deaf, losing my (?:hair|hearing|
            sight), bleeding, limping, coughing, shivering, throwing up, constipated, incontinent, paraly~, an
            amputee, a wheelchair user, an addict, burnt-out, pregnant, sick, ill, depressed, suicidal, sober, an
            alcoholic, a recovering alcoholic, disabled, deaf, blind, short-sighted, nearsighted, overweight, obese,
            infertile, injured, hospitali~, diagnosed, vaccinated, contagious, feverish, nauseous, dizzy, insulin,
            intolerant, infected, bedridden, burned out, burnt out, in rehab, in therapy, on medication, on meds, on
            antidepressants, on antibiotics, on sick leave, positive for, hurting, in pain, operated on, """
        + _ILLNESSES,
        "my": """abortion, heart pill, heart pills, cycle, hamstring, achilles, calf, thigh, groin, ribs?, heel,
            shin, tendon, ligament, cartilage, collarbone, pelvis, side effects, dose, blood, glucose, prognosis,
            stoma, bump, mental state, moods, panic, ocd, phobia, stutter, stammer, limp, asthma, inhaler, epipen,
            walking stick, hearing test, eye test, sight, memory (?:is|has|keeps|isn't), mobility, balance is,
            (?:\\w+ )?(?:back|knee|hip|shoulder|neck|ankle|wrist)'s, periods?, teeth, gums, bladder, bowels?, womb,
            uterus, ovaries, prostate, tonsils, appendix, wisdom teeth, wisdom tooth, glasses, lenses, voice is
            gone, breathing, heart rate, pulse, iron levels, hormones, pain, pains, disorder, drinking problem,
            drinking, smoking, nerves are, anxiety, trauma, ptsd, triggers, self-esteem issues, doctors, gp's,
            psychologist, psychotherapist, a1c, antibodies, vaccination~, vaccine, booster, jab, transplant, organ,
            waist, sugar (?:was|is|level|went|drop~|crash~), tablets, lump, scan, mammogram, chemo, stitches, brace,
            dentures, contractions, antenatal, consultant, specialist, nurse, carer, optician, chiropractor,
            osteopath, paediatrician, pediatrician, urologist, rheumatologist, podiatrist, nutritionist, dietitian,
            dietician, counsellor, counselor, sponsor, joints, nerves, hot flush, hot flash, cravings, eating
            disorder, waters broke, mood swing, hospital appointment, hair is falling, recovery, doctor, physician,
            gp, therapist, psychiatrist, dentist, dermatologist, cardiologist, oncologist, neurologist,
            gynecologist, gynaecologist, surgeon, physio, midwife, symptom, diagnosis, illness, disease, condition,
            disability, blood pressure, blood sugar, blood type, cholesterol, bmi, weight, period, pregnancy, due
            date, hearing, eyesight, mental health, health, immune system, cast, injury, fever, cough, rash, test
            results, blood work, lab results, treatment, therapy, dosage, pills, pill, insomnia, sleep, appetite,
            health insurance, doctor's appointment, """
        + _TREATMENTS
        + ", "
        + _ILLNESSES,
        "have": """a breakdown, an abortion, a termination, a hysterectomy, a vasectomy, ringing in, pins and
            needles, high (?:temperature|fever|blood pressure|cholesterol|sugar), low (?:iron|blood pressure|blood
            sugar), blood in, side effects, a (?:bad|weak|dodgy|torn|pulled|trapped|sprained|fractured|broken)
            (?:\\w+ )?(?:back|knee|shoulder|hip|ankle|wrist|leg|tooth|stomach|heart|foot|arm|eye|nerve|muscle|
            tendon|ligament|rib|hamstring|disc), stitches, a relapse, a panic, a phobia, stage (?:one|two|three|
            four), gluten, filling done, tooth out, tonsils out, wisdom teeth out, (?:\\w+ )?(?:cramps|cramp), chest
            pains?, pains?, bad (?:chest|back|heart|leg|eyes|cough|cold), an episode, a jab, jabs, booster, tonsils,
            (?:weak|sensitive|bad) (?:stomach|heart|lungs|bones|bladder|knees|ankles), a disorder, a hole in, an
            eating ~, one kidney, a limp, dizzy ~, fits, voices in my head, a scar, allergies, tablet, half a
            (?:tablet|pill), hot flush, hot flash, night sweats, palpitations, heartburn, a lump, bruise, blister,
            swelling, sprain, cavity, contractions, dizzy spell, nosebleed, stomach bug, stomach flu, a bad back,
            bad knee, bad knees, a bad hip, mood swing, a bad heart, heart condition, nervous breakdown, mental
            breakdown, suicidal thoughts, flashback, trouble sleeping, trouble breathing, trouble hearing, therapy,
            ms(?![. ]\\w), scan, tooth (?:out|pulled), fever, temperature, cold, cough, sore throat, rash, pain,
            headache, toothache, backache, stomach ache, stomachache, nausea, cramps, disability, illness, disease,
            condition, infection, virus, injury, symptom, baby bump, allergy, pill, pills, mg, doctor's appointment,
            appendix, """
        + _TREATMENTS
        + ", "
        + _ILLNESSES,
        "i": f"""(?:can't|cannot|couldn't|can barely) (?:hear|see) (?:anything|on|in|out of|with), (?:pull~|tore|
            torn|strain~|sprain~|bruis~|crack~|burn~|burnt|cut|injur~|twist~|bang~|did in|dislocat~|broke|broken|
            fractur~|hurt|shatter~) (?:my|his|her) (?:\\w+ ){{0,2}}(?:{_BODY}|hamstring|calf|thigh|groin|ribs?|heel|
            shin|tendon|ligament|collarbone|pelvis|nose|face|lip), throws? up, can't put weight on, (?:haven't|
            hasn't|not) (?:touched|had) a (?:drink|drop|cigarette|smoke), (?:get|gets|got|feel|feels|felt|wake up|
            woke up|am) (?:\\w+ )?(?:breathless|dizzy|faint|nauseous|wheezy|light-headed|feverish|shaky|suicidal|
            depressed|panicky), lost the baby, (?:put|putting) (?:me|her|him) on \\w+, hear voices, (?:can't|cannot|
            can not|couldn't|mustn't|don't|not allowed to) (?:eat|have|drink|tolerate|touch) (?:\\w+ )?(?:gluten|
            dairy|lactose|nuts|peanuts|shellfish|wheat|sugar|eggs|alcohol|salt|milk), put on (?:\\w+
            ){{0,2}}(?:weight|kilos|pounds|stone), lost (?:a|\\w+) stone, (?:can't|cannot|couldn't|not allowed to)
            (?:\\w+ )?(?:drive|lift|bend|kneel|work) (?:since|because|until|after|anymore), (?:came|come|coming|
            stopped taking|stop taking|started taking|went on|going on|switched to) (?:off |on )?(?:the |my |\\w+
            )?(?:antidepressants|meds|medication|pills|tablets|steroids), (?:spent|spend) (?:\\w+ ){{0,4}}(?:in
            hospital|in the hospital|in bed|in a clinic|in rehab|in a psychiatric), need(?:s|ed)? (?:\\w+
            ){{0,3}}(?:stitches|surgery|operation|glasses|crutches|transplant|injection), binge~, black out, blacked
            out, drink (?:too much|every night|heavily), smoke (?:\\w+ ){{0,3}}(?:a day|weed|packs?), (?:haven't|
            have not|didn't|barely|hardly|scarcely|never) (?:\\w+ ){{0,2}}(?:slept|sleep) (?:more than|properly|
            well|at all|through|in|for|since), (?:can't|cannot|couldn't|can not|can hardly|can barely|could not|
            could barely) (?:\\w+ ){{0,2}}(?:get out of bed|see (?:properly|well)|hear (?:properly|well)|bend|stand
            up|climb|keep (?:\\w+ )?(?:food|anything) down|swallow|feel my|move my|lift my|stop (?:drinking|smoking|
            shaking|coughing|crying)), limp, wheez~, cough~, collaps~, had (?:\\w+ ){{0,4}}(?:removed|taken out|
            replaced|amputated), (?:go|went|going) into labou?r, (?:go|goes|went) to (?:\\w+ ){{0,2}}(?:aa|na|
            physio|therapy|counselling|counseling|rehab|the clinic), (?:go|went|going) (?:deaf|blind), (?:cut|
            starve|starved|purge|purged) myself, tried to kill (?:him|her|my)self, (?:have|had|get|got) (?:\\w+
            ){{0,3}}(?:put in plaster|x-rayed|tested for), (?:go|went|going) through (?:\\w+ )?(?:menopause|chemo|
            ivf), come down with, came down with, caught (?:a|the) (?:\\w+ )?(?:cold|flu|virus|bug), recovering
            from, (?:take|takes|took|taking) (?:\\w+ ){{0,4}}(?:mg|tablet|pills|drops), inject~ (?:my|her|him|
            insulin), see (?:a|my) (?:\\w+ )?(?:counsellor|consultant|physio), (?:broke|broken|sprain~|fractur~|
            twisted) (?:an?|his|her|their|the) (?:\\w+ )?(?:{_BODY}), put my back out, threw my back out, pulled a
            muscle, (?:due|booked) (?:in )?for (?:\\w+ )?(?:scan|surgery|operation), blood test~, diagnosed with,
            suffer~ from, hospitali~, vaccinated, got vaccinated, tested positive, tested negative, threw up,
            throwing up, vomit~, faint~, passed out, relaps~, overdos~, miscarried, (?:broke|broken|sprain~|
            fractur~|tore|torn|twisted|dislocat~|injur~|hurt) my (?:\\w+ )?(?:{_BODY}), lost (?:\\w+
            ){{0,2}}(?:kilos|pounds|kg|weight), gained (?:\\w+ ){{0,2}}(?:kilos|pounds|kg|weight), (?:quit|stopped|
            gave up) (?:drinking|smoking|alcohol), (?:can't|cannot|couldn't|can not) (?:sleep|breathe|walk),
            sle(?:ep|pt) (?:badly|poorly), see(?:ing)? (?:a|my) (?:therapist|psychologist|psychiatrist|doctor|
            specialist), saw (?:a|my) (?:therapist|psychologist|psychiatrist|doctor|specialist), went to the
            (?:doctor|er|hospital|dentist), going to the (?:doctor|er|hospital|dentist), go to therapy, in therapy,
            on medication, self-harm~, hurt myself, kill myself""",
        "about": f"""put (?:me|us|my \\w+) (?:back )?on (?:a )?(?:\\w+ )?(?:statins?|antibiotics|antidepressants|
            insulin|steroids|medication|meds|drip|diet|waiting list|blood thinners|oxygen), (?:diagnos~|prescrib~|
            operat~ on|refer~|vaccinat~|x-ray~|discharg~|admit~) (?:me|us|him|her|my \\w+), (?:half |one side of
            )?my (?:\\w+ ){{0,2}}(?:{_BODY}|face|mouth|body|side)(?:'s|is|are|was|feels|feel|has|goes|went|keeps|
            won't|started) (?:\\w+ ){{0,3}}(?:numb|out|sore|stiff|swollen|bad|playing up|locked|locking|clicking|
            painful|broken|weak|bruised|bleeding|twitching|itchy|inflamed|blurry|ringing|blocked|gone|hurting|
            aching|killing|bothering|better since|worse|heal~|infected), my (?:\\w+ ){{0,2}}(?:{_BODY})
            (?:\\w+(?:'\\w+)? ){{0,3}}(?:pound~|rac(?:es|ed|ing)|throb~|numb|tingl~|itch~|stiff~|swell~|cramp~|gave
            way|gives way|giving (?:out|way)|seiz~|trembl~|shak(?:e|es|ing)|burn(?:s|ing)|playing up|acting up|
            blocked|inflamed|sprained|fractured|failing|weak|went|go numb), my (?:\\w+ )?(?:{_BODY})
            (?:\\w+(?:'\\w+)? ){{0,3}}(?:hurt~|ach~|pain~|killing|swollen|sore|broken|bleed~|infected|gone|worse)""",
        "any": f"""(?:{_BODY}) (?:trouble|problem|issue|surgery|operation|injury|pain), mg of, milligrams of,
            sleepless, sleeping pills, chemotherapy, breast cancer, reading glasses""",
        "told": f"""on the spectrum, hospice, nursing home, palliative, terminal (?:cancer|illness|diagnosis), stage
            (?:two|three|four|ii|iii|iv|[1-4]), prognosis, side effects, dosage, prescription, medication, a&e,
            ambulance, sprain~, fractur~, hamstring, achilles tendon, meniscus, rotator cuff, hypoglyc~, glucose,
            sleep paralysis, night terrors, hallucinat~, panic attacks?, relaps~, overdos~, miscarr~, stillborn,
            pregnan~, trimester, breastfe~, fertility, menopaus~, period pain, orthodontist, cataracts?, mobility
            scooter, tested positive, feverish, (?:pain|ringing|burning|tightness|pressure|numbness|tingling|
            swelling|rash|itching|stiffness|twinge|aching|weakness) (?:\\w+ ){{0,2}}(?:in|on|under|behind|down|
            around) (?:my|his|her|both|one), my sugar, medical (?:history|condition|leave|tests?|procedure), health
            (?:scare|condition|problems?|issues), diagnos(?:is|ed), symptoms?, ultrasound, x-ray, mri, ct scan,
            surgery, dialysis, inhaler, hearing aids?, wheelchair, crutches, pacemaker, ivf, in hospital, in the
            hospital, to hospital, hospitali~, intensive care, waiting list for (?:a|an|my|the) (?:new |\\w+
            )?(?:hip|knee|operation|surgery|therapist), (?:hole|murmur|valve) in (?:my|his|her) heart, epipen,
            memory is going, blood (?:came back|test~|results|count), test results, biopsy, epidural, physiotherap~,
            antibiotics, antidepressants, painkillers, the pill since, sleep clinic, pain clinic, (?:anger|grief|
            weight) (?:management|counselling|clinic), relapsed, in remission, sick note, allergic to, intolerant,
            psychiatr~, therapist, suicid~, self-harm~, eating disorder, mental illness, wisdom teeth, root canal,
            tonsils, mammogram, colonoscopy, endoscopy, chemo, radiotherapy, radiation therapy, smear test, blood
            test, the lump, malignan~, benign, anaesthetic, the (?:\\w+ )?(?:{_BODY}) (?:\\w+(?:'\\w+)?
            ){{0,2}}(?:hurt~|ach(?:es|ed|ing)|went again|gone again|giving (?:out|way)|gave way|playing up|acting
            up|swollen|sore|stiff|bleed~|throb~), the (?:\\w+ )?(?:doctor|surgeon|gp|specialist|consultant|nurse|
            physio|midwife|dentist|oncologist|cardiologist|neurologist|dermatologist|psychiatrist|therapist|
            hospital|clinic|paramedics?) (?:\\w+ ){{0,2}}(?:say|says|said|told|thinks|thought|found|gave|wants|put|
            called|rang|prescrib~|sent|confirmed|reckons|ordered|recommended|warned|advised|suggested|diagnosed|
            took|are|has|had), the (?:\\w+ )?(?:replacement|transplant|bypass) (?:op|surgery|operation), in
            intensive care, sick leave, off sick, signed off sick, care home for dementia, (?:have|has|had|having)
            (?:a|another|her|his|my|an) (?:\\w+ )?(?:stroke|heart attack|fit|seizure|scan|operation|fall|
            miscarriage)"""
        ", " + _CLEAR_ILLNESSES + ", " + _MEDICINES,
    },
    "money": {
        "am": """one (?:\\w+ )?(?:bill|paycheck|payslip|payment) away, in an iva, on a (?:tight|strict|small|
            shoestring) budget, out of pocket, paid (?:peanuts|monthly|weekly|hourly|less|well|badly|cash), poor,
            (?:\\w+ )?rich, making (?:good|decent|less|more) money, saving (?:\\w+ ){0,3}(?:month|money|deposit|
            house|retirement|car), still paying, getting (?:by on|paid), expecting a (?:refund|bonus|raise), a
            homeowner, a landlord, a shareholder, owe~ (?:#|money), being chased (?:\\w+ ){0,4}(?:debt|bill|money|
            payment), living (?:off|on) (?:my|our|#|a|benefits|credit|savings), on (?:\\w+ ){0,2}(?:disability|
            income support|jobseeker~|universal credit), one paycheck away, drowning in debt, in (?:\\w+ )?(?:debt|
            arrears|negative equity), saving (?:up )?(?:for|#), worth #, (?:\\w+ )?down (?:by )?#, up (?:by )?#,
            making (?:\\w+ )?#, tight (?:for|on) (?:money|cash), comfortable financially, loaded, skint, strapped,
            penniless, well off, well-off, wealthy, comfortably off, comfortable enough, short of (?:money|cash), #
            short, short (?:this|for the) (?:month|rent|mortgage), in arrears, in the red, living paycheck to,
            living on (?:#|benefits|my|our|savings|a), behind (?:\\w+ ){0,4}(?:rent|mortgage|bills|payments|loan),
            out of money, on minimum wage, on # a (?:year|month), on (?:a )?\\w+ salary, down to (?:my|our) last, in
            financial, made bankrupt, paid #, maxed out, a beneficiary, struggling (?:\\w+ ){0,2}(?:financially|to
            pay|with money|with debt), broke, in debt, bankrupt, overdrawn, behind on my rent, behind on the rent,
            behind on my bills, behind on payments, a millionaire, paid, underpaid, on benefits, on welfare, on food
            stamps, insolvent, paying off (?:my|our|the|a), saving up, saving for""",
        "my": """card (?:got|was|is|has been|keeps) (?:declined|blocked|maxed|frozen), payments, repayments,
            mortgage payment~, bill, gas bill, electricity bill, heating bill, energy bill, council tax, balance is,
            pay packet, pay slip, pay cheque, inheritance tax, estate, trust, commission, hourly wage, monthly
            income, isa, brokerage, roth, 401\\(k\\), overdraft, cash, allowance, benefits, nest egg, retirement,
            paycheque, payslip, payday, payment, debit, lease, landlord, deposit, dividend, interest rate, net pay,
            take-home, hourly rate, trust fund, crypto, bitcoin, severance, royalties, life savings, expenses,
            spending, financial \\w+, tax bill, tax refund, direct debit, side income, remortgage, salary, wage,
            wages, income, paycheck, pension, savings, debt, debts, mortgage, rent, loan, loans, credit card, debit
            card, credit score, bank, bank account, account, budget, taxes, tax return, portfolio, investments,
            investment, shares, stocks, 401k, ira, net worth, inheritance, alimony, child support, bonus, bills,
            iban, account number, finances, money, student loan, insurance premium""",
        "have": """(?:\\w+ )?put by, put by, no credit, bad credit, good credit, (?:a )?rainy day, in cash, a second
            mortgage, an index fund, stock options, a side income, enough (?:money|savings|saved), money (?:worries|
            issues|in the bank|to live), (?:#|\\d+) (?:\\w+ )?(?:to last|left till|left until|to my name|in my
            account|in premium bonds|in an isa), repayments, (?:unpaid|outstanding|overdue) ~, bills, nothing saved,
            nothing left, a loan, a mortgage, a payday ~, a windfall, a rent ~, # (?:\\w+ )?(?:dollars|bucks|pounds|
            quid|euros?|grand|pence|cents|francs|in debt|in the bank|saved|left|to last|put away|put aside|invested|
            stashed), arrears, trust fund, nest egg, payday loan, tax bill, dividends, royalties, allowance, debt
            collector, money left, money saved, money put, overdraft, no money, nothing in the bank, tax rebate,
            rebate, gambling debt, pay rise, pay cut, bills to pay, car loan, credit cards, debt, debts, savings,
            mortgage, loan, loans, credit card, in the bank, in savings, unemployment benefits, benefits, welfare,
            stipend, raise, bonus, pension, inheritance, shares, stocks, bonds, bitcoin, crypto, index fund, money,
            student loans, tax refund, financial problems, money problems""",
        "i": r"""keep (?:\w+ ){0,2}#, (?:pay|pays|paid|paying) (?:\w+ ){0,3}(?:#|back|a mortgage|into|towards),
            clear(?:ed)? (?:\w+ ){0,4}debts?, (?:still )?owe (?:him|her|them|my|the|on), (?:can|could) (?:just |only
            |barely |hardly )afford, invest(?:ed|ing)? (?:\w+ ){0,4}(?:in|into) (?:stocks?|shares?|crypto~|bitcoin|
            property|funds?|gold|an index|etfs?|bonds?|real estate|a pension), (?:lend|lent) (?:him|her|them|my|our|
            a friend|#), gamble~, get(?:s)? paid, live paycheck, scrap(?:e|ing) by, retire~ (?:on|with) #, bought
            (?:\w+ ){0,3}(?:shares|stock|bonds), (?:make|makes|made|earn~|bring in|pull in|clear|cleared|gross~|net|
            nets) (?:\w+ ){0,3}#, (?:blew|burned through|wasted|spent|spend) (?:\w+ ){0,3}(?:bonus|savings|
            inheritance|wages|salary|paycheck|pension), (?:win|won) (?:\w+ ){0,2}(?:#|the lottery|jackpot), barely
            (?:\w+ )?(?:cover|pay|make|scrape), (?:been|be|keep) (?:\w+ )?(?:putting|paying|saving) (?:\w+
            ){0,5}(?:pension|savings|wages|salary|off|into|aside|isa|401k), can't (?:\w+ )?(?:cover|pay) (?:the|my|
            our), borrow~ (?:\w+ ){0,4}(?:from|off|#), pawn(?:ed)?, cash(?:ed)? in my, downsiz~, rent out, (?:take|
            takes|took|bring|brings|brought|taking|bringing) home #, (?:put|set|tucked|stashed) (?:away|aside|by)
            (?:\w+ ){0,4}#, (?:put|putting|set|setting) (?:\w+ ){0,4}(?:aside|away|savings|money) (?:each|every|
            into|in|a month|from), (?:pay|pays|paid|paying) (?:\w+ ){0,4}(?:rent|mortgage|tax|taxes|bills|alimony|
            maintenance|child support|interest|instal~|# (?:\w+ ){0,2}(?:a|per|each|every) (?:month|week|year)|off
            (?:the|my|our|a|this)), (?:have|had|'ve) (?:\w+ )?(?:money|savings|cash) (?:\w+ ){0,2}(?:left|in|saved|
            put), (?:can't|cannot|couldn't|struggle~ to|barely|hardly) (?:\w+ )?(?:pay|make ends meet|cover), make
            ends meet, sav(?:e|ed|es|ing) up, saving for, sav(?:e|ed|es|ing) (?:\w+ )?(?:#|money), (?:went|going|go)
            (?:bankrupt|broke|bust|overdrawn), owe~ (?:\w+ ){0,4}#, rent(?:ed|s)? out, remortgag~, gambl~, bet
            (?:\w+ ){0,2}(?:money|#), (?:win|won|lost|lose|blew|wasted) (?:\w+ ){0,3}# (?:\w+ )?(?:dollars|bucks|
            pounds|quid|euros?|grand|on|in|at), declared bankruptcy, default~ on, got (?:\w+ ){0,3}(?:refund|rebate|
            bonus|raise|payout|loan), (?:buy|bought|sell|sold|trad(?:e|ed|ing)|hold) (?:\w+ ){0,4}(?:shares?|
            stocks?|bonds?|bitcoin|ethereum|crypto~|etfs?), (?:claim~|get|getting) (?:universal credit|benefits|
            housing benefit|food stamps|unemployment|disability), live on (?:#|my|benefits|a), (?:put|charged)
            (?:\w+ ){0,4}on (?:\w+ ){0,2}(?:credit )?card, racked up (?:\w+ ){0,3}debt~, (?:file|filed|do|did)
            (?:my|our) (?:tax~|self-assessment), earn~, (?:make|made|get|got) (?:\w+ ){0,2}[$€£]?\d[\d,.]*k?\b,
            owe~, owing, borrow~, invest(?:ed|ing)? (?:in|[$€£]?\d[\d,.]*), (?:can't|cannot|couldn't|can not|can
            barely|could not) (?:\w+ )?afford, inherit~, save (?:\w+ )?[$€£]?\d[\d,.]*, filed for bankruptcy, went
            bankrupt, took out a (?:\w+ )?(?:loan|mortgage), pay(?:ing)? (?:off|back) (?:my|our|the|a|some), put
            [$€£]?\d[\d,.]*, spen(?:d|t) (?:\w+ ){0,3}[$€£]?\d[\d,.]*, lost (?:\w+ ){0,4}(?:money|savings), bank
            with, lent, refinanc~""",
        "about": r"""(?:paid|pay|pays|paying) (?:me|us) back, (?:bills?|rent|mortgage|taxes) (?:is|are|went|has
            gone|have gone) (?:\w+ ){0,2}(?:up|through|killing|due|late), scamm(?:ed|ing) (?:me|us), (?:deduct|took|
            takes|taken) (?:\w+ ){0,3}(?:out of|from) my (?:pay|account|salary|wages), left (?:me|us) (?:\w+
            ){0,2}(?:house|flat|money|everything|nothing|shares|estate|debts?|savings|inheritance), (?:stopped|stop|
            keeps|refuses to) pay~ (?:me|us|child support|maintenance|alimony), lent (?:me|us) the deposit, pay(?:s|
            ing)? (?:me|us) (?:\w+ ){0,3}(?:an hour|a month|a week|minimum|peanuts|less|more|under), (?:left|leaves|
            gave|gives|sends|sent|charg(?:es|ed)|lends|stole from|fined|cost~) (?:me|us) (?:\w+ ){0,4}#, the bank
            (?:\w+ ){0,2}(?:turned|refused|declined|rejected|blocked|froze|closed|said|wants|called|rang|approved|
            gave), lives? off (?:me|us|my), (?:owes|owe|wants|paid|pays|lent) (?:me|us) (?:\w+
            ){0,2}[$€£]?\d[\d,.]*, paid off (?:my|our|the) \w+""",
        "any": r"""mortgage, credit score, bank account, in savings, tax refund, student loan, bankruptcy, paycheck,
            in cryptocurrency, retirement fund, overdraft, maxed out""",
        "told": """overdrawn, bankrupt~, credit score, credit rating, net worth, 401k, roth ira, index funds?,
            etfs?, crypto~, bitcoin, ethereum, my investments, stock options, nest egg, rainy day fund, loan,
            instalments?, installments?, down payment, landlord (?:wants|raised|put|is|has|says), rent increase,
            can't afford, couldn't afford, payday, pay cheque, paycheque, hmrc, the irs, self-assessment, pay cut,
            gambling, the casino, bookies, lottery, unpaid (?:bill|invoice|rent|wages|tax)s?, overdue, my pay,
            salary, wages, in savings, life savings, repayments, child support, alimony, inheritance, minimum wage,
            council tax, (?:gas|electricity|energy|heating|water|phone|tax|credit card|medical|hospital|vet|dental)
            bills?, debt agency, collection agency, debts?, overdraft, loan shark, payday loan, credit union,
            remortgage~, interest rate (?:went|rose|on), rent arrears, foreclosure, repossess~, evict~, standing
            order, direct debit, stocks and shares, premium bonds, dividends, redundancy payout, pension pot, state
            pension, food stamps, housing benefit, (?:on|off|the|two|three|four|several|of) (?:\\w+ ){0,2}credit
            cards?, pension, gambling debt, debt collector~, bailiff~, the taxman, (?:the|three|two|of|in) (?:\\w+
            )?arrears, the rent (?:is|was|went|on|by|for|this|and|again|due), the mortgage, the interest (?:is|on|
            rate), tax refund, tax rebate, tax bill, tax return, (?:half|all|most|none) of (?:my|our|the) (?:salary|
            savings|money|pay|wages|income), the (?:loan|overdraft|inheritance), universal credit, food bank, cost
            of living crisis, (?:a|per|an) (?:month|hour|year|week) (?:net|gross|before tax|after tax~), after
            taxes, the shares, redundancy (?:pay|money), till payday, until payday, end of the month (?:\\w+
            ){0,3}(?:money|broke|pay)""",
    },
    "religion": {
        "am": """a churchgoing, a lapsed, a devout, a practising, a practicing, a strict ~, brought up (?:\\w+
            )?(?:catholic|presbyterian|methodist|baptist|christian|jewish|muslim|hindu|mormon|in the church|
            religious), from a (?:\\w+ )?(?:religious|catholic|muslim|jewish|hindu|christian|sikh|mormon) (?:family|
            home|background), raised in (?:the|a) (?:\\w+ )?(?:church|faith|religio~|christian|catholic|muslim|
            jewish|cult), christened, an altar boy, an altar girl, closest to god, closer to god, an elder, a
            deacon, a sunday school ~, a eucharistic ~, confirmed, received into, at peace with god, a follower of,
            a member of (?:\\w+ ){0,3}(?:church|congregation|parish|mosque|synagogue|temple), a person of faith, of
            no religion, a baptist, a methodist, a lutheran, shia, sunni, sufi, ismaili, baha'i, jain, taoist,
            daoist, shinto, zoroastrian, rastafarian, calvinist, reformed jew, pentecostal, seventh-day adventist,
            adventist, unitarian, greek orthodox, hasidic, secular, godless, irreligious, lapsed, born again,
            born-again, reborn, churchgoing, god-fearing, pious, not religious, ordained, vegan for religious, a
            churchgoer, a churchwarden, a verger, a lay reader, an altar (?:boy|girl|server), a missionary, a
            seminarian, a heretic, a humanist, an unbeliever, a nonbeliever, a non-believer, a heathen, baptised,
            raised (?:\\w+ )?(?:catholic|christian|muslim|jewish|hindu|buddhist|mormon|baptist), on (?:a
            )?pilgrimage, going to hell, in the choir at church, catholic, protestant, christian, muslim, jewish, a
            jew, hindu, buddhist, sikh, mormon, orthodox, evangelical, baptist, methodist, lutheran, anglican,
            presbyterian, quaker, agnostic, atheist, an atheist, religious, spiritual, pagan, wiccan, baptized, a
            believer, observant, devout, a nun, a monk, a priest, a pastor, an imam, a rabbi, a minister, confirmed
            in church, kosher, fasting, praying, jehovah's witness""",
        "my": """family is (?:\\w+ )?(?:muslim|jewish|catholic|christian|hindu|sikh|religious|mormon), church's,
            youth group at church, rabbi's, relationship with god, mosque's, nun, religious ~, cross, creed, vicar,
            curate, reverend, rector, bishop, chaplain, parson, deacon, guru, sangha, lama, mullah, sheikh, cantor,
            churchwarden, house group, prayer group, prayer mat, headscarf, crucifix, scripture, psalm, gospel,
            belief in god, beliefs, spiritual \\w+, christening, catechism, mandir, gurdwara, iftar, menorah, altar,
            shrine, saviour, savior, lord, creator, monastery, convent, kosher, hymn, faith, religion, church,
            mosque, synagogue, parish, congregation, pastor, priest, rabbi, imam, bible, quran, koran, torah,
            rosary, prayers, prayer, baptism, bar mitzvah, bat mitzvah, first communion, confirmation, pilgrimage,
            god, religious beliefs, temple, hijab, kippah, turban, bible study, minister""",
        "have": """a god, god in, an altar, prayers, religious ~, a faith, headscarf, rosary, crucifix, prayer,
            prayer group, confession, communion, bible, christening, kosher, seder, iftar, mass, lost (?:my|his|her)
            faith, faith, hijab, kippah, kippa, turban, bible study, baptism, spiritual""",
        "i": """(?:cover|covers|covered) my (?:hair|head), circumcis~, (?:observe|celebrate|celebrates|celebrating)
            (?:\\w+ ){0,2}(?:eid|diwali|passover|hanukkah|shabbat|ramadan|lent|vesak|holi|yom kippur|sukkot|purim),
            attend~ (?:\\w+ ){0,4}(?:church|mass|mosque|synagogue|temple|service|services|bible study), sing~ in the
            church, (?:don't|do not|no longer|never|can't) (?:\\w+ )?(?:believe|pray|practi[sc]e|go to church|
            worship), believe (?:\\w+ )?(?:there's|there is) (?:\\w+ )?(?:god|something|nothing|heaven|life),
            (?:become|became|becoming) (?:a|an) (?:quaker|catholic|christian|muslim|buddhist|mormon|atheist|nun|
            monk|priest|jehovah~|jew|hindu|sikh), (?:run|lead|led|teach|host) (?:\\w+ ){0,4}(?:church|bible|mosque|
            parish|sunday school), go(?:es)? on (?:\\w+ ){0,3}(?:retreat|pilgrimage), gave up \\w+ for lent,
            (?:married|marry) in (?:a|the) (?:church|sikh|hindu|jewish|catholic|mosque|synagogue), chant~, (?:light|
            lit|lights|lighting) (?:\\w+ ){0,3}(?:candle|candles|incense|menorah|lamp) (?:\\w+ ){0,2}(?:to|for|in|
            at|on) (?:\\w+ )?(?:saint|st|church|chapel|mary|shrine|virgin|friday|god), (?:say|says|said) (?:\\w+
            ){0,3}(?:grace|blessing|prayer~|rosary|kaddish|kiddush|hail mary|mantra~), (?:keep|keeps|kept|observ~)
            (?:\\w+ ){0,2}(?:kosher|shabbat|sabbath|halal|lent|ramadan|passover), eat~ (?:only )?(?:halal|kosher),
            fast(?:s|ed|ing)? (?:\\w+ ){0,4}(?:ramadan|lent|yom kippur|prayer), (?:left|leave|leaving|quit|join~)
            (?:the )?(?:jehovah~|mormon~|church|faith|cult|sect|order|convent|amish|scientolog~), (?:sing|sings|
            sang|play~|serve~|usher~|volunteer~|help~ out) (?:\\w+ ){0,4}(?:church|parish|chapel|mosque|synagogue|
            temple|choir at church|gospel choir), (?:went|go|goes|going) to (?:\\w+ ){0,3}(?:hajj|umrah|mecca|
            lourdes|gurdwara|mandir|chapel|vespers|evensong|service|prayers|shul|quaker meeting), (?:study|studied|
            studies|recite~|read|reads|learn~) (?:\\w+ ){0,2}(?:quran|koran|torah|talmud|gospels?|scripture~|
            sutras?|psalms?|bible), believe~ (?:\\w+ )?in (?:\\w+ )?(?:karma|reincarnation|higher power|creator|holy
            spirit|jesus christ|the lord|god), (?:gave|give|giving) up (?:\\w+ )?(?:\\w+ )?(?:for lent), ask(?:ed)?
            god, (?:thank|trust|love|serve|fear|praise) (?:god|the lord|jesus|allah), found (?:god|jesus|the lord),
            (?:lost|losing|found|questioning) my faith, (?:take|took|taking) (?:refuge|communion|my vows|holy
            orders), tithe, took my shahada, confess~ (?:my sins|to (?:a|the|my) priest), (?:wear|wears|wore|
            wearing) (?:\\w+ ){0,2}(?:headscarf|cross|kippa~|yarmulke|veil|niqab|turban|hijab), (?:believe|
            believing) (?:\\w+ )?there is (?:a|no) god, pray, prayed, praying, prays, convert~ to (?:islam|
            christianity|judaism|catholicism|buddhism|hinduism), (?:go|went|going|gone) to (?:\\w+ )?(?:church|mass|
            mosque|synagogue|temple|confession|bible study), believe in (?:god|jesus|allah|christ|heaven|an
            afterlife), (?:don't|do not|stopped) believ~ in (?:god|anything), worship~, baptis~, baptiz~, meditate
            at, keep kosher, keep halal, fast (?:during|for) (?:ramadan|lent|yom kippur), read (?:\\w+ )?(?:bible|
            quran|koran|torah|scripture), left (?:\\w+ ){0,2}(?:church|faith), sunday school""",
        "about": """god (?:has |have |will |is |was |\\w+ )?(?:carr~|help~|sav(?:ed|es|ing)|gave|given|bless~|
            answer~|heal~|watch~|forgiv~|guid~|with|got|called|led|sent) (?:me|us|my|our|over), god bless us, thank
            god for saving me""",
        "any": """ramadan, shabbat, sabbath, yom kippur, rosh hashanah, hajj, mecca, diwali puja, holy communion,
            bar mitzvah, bat mitzvah, bible study, sunday school, god's will, lord and savior""",
        "told": """circumcis~, presbyterian, methodist, lutheran, anglican, orthodox (?:church|jew~|christian),
            evangelical, baptist church, pentecostal, vipassana, meditation retreat, the temple every, patron saint,
            holy week, my saint, reincarnation, karma, allah, the prophet, inshallah, ancestors' altar, spirits of,
            jehovah~, hare krishna, scientolog~, cult, church(?!es), (?<!my )(?<!thank )(?<!for )(?<!swear to
            )god(?! (?:knows|damn|forbid)|'s sake), mosque, synagogue, the bible, nuns, priest, pastor, rabbi, imam,
            prayers?, sermon, pilgrimage, baptism, christening, communion, catholic, protestant, muslim, jewish,
            hindu, sikh, mormon, quaker, atheist, agnostic, islam, christianity, judaism, buddhism, hinduism,
            religious, religion, afterlife, after (?:we|you|i) die, high holidays, a christian, christian (?:faith|
            family|home|values|school|upbringing), for lent, the rosary, holy water, confession, buddhist (?:temple|
            teacher|monk|centre|center|retreat|group|monastery|nun), the buddha, zazen, jehovah's witness, (?:at|to|
            after|from|in|before) to mass, at mass, midnight mass, sunday mass, the vicar, the parish, the quran,
            evensong, the sangha, church service, church choir, kosher kitchen, halal meat, eid, iftar, suhoor,
            umrah, passover, pesach, seder, hanukkah, kiddush, kaddish, tefillin, minyan, mikveh, challah, friday
            prayers, gurdwara, mandir, puja, navratri, vaisakhi, a higher power, holy spirit, ash wednesday, during
            lent, first communion, saint anthony, the virgin mary, our lady""",
    },
    "politics": {
        "am": """(?:a member of|in) (?:\\w+ |\\w+'s? ){0,3}union, striking, on strike, with (?:greenpeace|amnesty),
            a communist, a socialist, boycott~, so done with (?:this|the) (?:government|party|president|
            politicians), done with (?:\\w+ ){0,2}(?:labour|politics|democrats|republicans|tories|greens), furious
            (?:\\w+ ){0,2}(?:government|election|president|council), proud to (?:vote|be a (?:republican|democrat|
            socialist|patriot)), politically ~, in the resistance, on the council, an organi[sz]er for, all for
            (?:\\w+ ){0,3}(?:tax|taxes|union|unions|independence|republic|revolution|reform), all in favour, dead
            against, (?:pretty|very|quite|fairly|fiercely) (?:conservative|liberal|left|right|political|pro|anti), a
            paid-up, a member of (?:the )?(?:\\w+ )?(?:party|snp|union|labour|greens|tories|dsa|nra|aclu|amnesty|
            greenpeace|unison), a (?:trump|biden|labour|tory|green|democrat|republican|corbyn|sanders|remain|leave|
            le pen|macron) ~, on the picket line, pro-union, pro-immigration, a delegate, left wing, right wing, a
            leftie, a lefty, a conservative, a tory, tories, a remainer, a brexiteer, a leaver, pro-european,
            anti-eu, eurosceptic, a monarchist, a republican, a royalist, a patriot, a populist, a pacifist,
            anti-war, anti-capitalist, a suffragette, a trade unionist, a shop steward, a councillor, a campaigner,
            an mp, standing for (?:\\w+ ){0,3}(?:council|parliament|election|mp|mayor), registered (?:democrat|
            republican|independent|to vote), a registered \\w+, an independent voter, a swing voter, a floating
            voter, a social democrat, apolitical, not political, not into politics, pro-gun, anti-gun, pro-israel,
            pro-palestin~, against the (?:war|government|death penalty|monarchy|eu|bill|cuts), in favour of (?:\\w+
            ){0,3}(?:tax|independence|monarchy|republic|death penalty|immigration|leaving), (?:a member|in) of
            (?:the )?(?:labour|greens?|conservatives?|lib dems?|snp|democratic|republican|communist|socialist),
            republican, democrat, conservative, liberal, socialist, communist, libertarian, anarchist, marxist,
            feminist, activist, left-wing, right-wing, leftist, centrist, progressive, nationalist, pro-choice,
            pro-life, politically active, politically, member of the (?:\\w+ )?party, card-carrying, a green, union
            member, union rep, in a union, against abortion, for abortion, against immigration, against gun control,
            for gun control, running for, voting for, an anti-vaxxer, maga""",
        "my": """mp, councillor, representative in, government, politics are, leaflet~, placard, protest, union
            dues, state senator, political \\w+, activism, voting, vote, candidate, local mp, polling station, trade
            union, shop steward, ballot, party, political views, politics, political beliefs, political opinion,
            congressman, congresswoman, senator, union, political party""",
        "have": """voted for, a placard, a yard sign, a petition, never voted, voted, political, strong opinions on
            (?:\\w+ )?(?:immigration|tax~|politics|brexit), political views, strong opinions about politics""",
        "i": """boycott~, (?:want|wants|wanted) (?:\\w+ ){1,3}to (?:be independent|leave the eu|win the election|
            resign|become president|be president|be impeached), (?:think|believe|feel|reckon) (?:that )?(?:the
            )?(?:rich|billionaires|landlords|monarchy|bosses|corporations|police|borders|immigrants|migrants|
            refugees|guns|drugs|prisons|prostitution|weed|cannabis|abortion|private schools|nuclear (?:power|
            weapons)|wars?) (?:should|shouldn't|must|ought|need), (?:work|worked|volunteer~|phone~) (?:\\w+
            ){0,4}(?:for|at) (?:\\w+ ){0,3}(?:party|campaign|election), tear-gassed, cancel (?:each other|his vote|
            her vote), (?:spoil~|cast|casting) (?:my|a|the) (?:ballot|vote), (?:write|wrote|writing|complain~) to
            (?:my|the|our) (?:\\w+ )?(?:mp|senator|congress~|councillor|representative|mayor|minister), believe in
            (?:\\w+ ){0,2}(?:borders|unions?|socialism|free market~|small government|equality|democracy|universal|
            revolution|independence|free speech|gun rights|the right to), refuse to (?:pay tax~|vote), deliver~
            (?:\\w+ ){0,2}leaflets, phone bank~, (?:went|go|going|been) (?:on|to) (?:\\w+ ){0,4}(?:march|protest|
            demo|demonstration|rally|rallies|strike|picket), (?:think|believe|feel|reckon|say|find|hope|wish)
            (?:that )?(?:\\w+ ){0,4}(?:should|ought to|must|need to|has to|have to|would) (?:\\w+ ){0,2}(?:abolish~|
            nationali[sz]e~|privati[sz]e~|tax|ban|legali[sz]e~|deport|leave the eu|rejoin|defund|resign|be
            abolished|be banned|be taxed|be legal~|be scrapped|be nationali[sz]ed|be deported|be free), never vote,
            (?:stand|stood|standing|run|ran|running) (?:for|as) (?:\\w+ ){0,4}(?:council|parliament|congress|office|
            mayor|election|senate|mp|candidate|school board|assembly), (?:hate|loathe|despise|detest|like|love|
            admire|respect|support~|back~|oppos~|distrust~|trust|(?:can't|cannot|couldn't) (?:stand|bear|abide)|fed
            up with|sick of|tired of|ashamed of|disgusted (?:by|with)|angry (?:at|with)) (?:\\w+
            ){0,3}(?:government|president|prime minister|politicians?|chancellor|tories|republicans|democrats|
            socialists|immigration|brexit|left-wing|right-wing|the left|the right|capitalism|communism|socialism|
            fascis~|monarchy|unions?|trump|biden|the eu|nato|labour party), (?:march~|protest(?!ant)~|demonstrat~|
            rallied|rally|rallying|picket~|campaign~|went on strike|chained (?:my|him|her)self|glued (?:my|him|
            her)self|camped) (?:\\w+ ){0,8}(?:against|for|outside|at), (?:got|was|were|been|being) arrested (?:\\w+
            ){0,4}(?:protest|demo|demonstration|blockade|march|rally|sit-in|strike|riot), (?:knock~|canvass~) (?:on|
            for) (?:\\w+ )?(?:doo~|the), leaflet~, phone-bank~, (?:hand~|giv~|deliver~) out (?:\\w+
            ){0,2}(?:leaflets|flyers) (?:for|against), donat(?:e|ed|es|ing) (?:\\w+ ){0,6}to (?:\\w+
            ){0,2}(?:campaign|party|democrats|republicans|bernie~|trump~|biden~|greenpeace|labour|greens|candidate),
            (?:think|believe|feel|reckon|say|find|argue|convinced) (?:that )?(?:\\w+ ){0,5}(?:immigration|migrants|
            refugees|asylum seekers|taxes|taxed|the rich|billionaires|nuclear power|the death penalty|the monarchy|
            borders|capitalism|socialism|welfare|minimum wage|gun laws|guns|the eu|the police|military spending|the
            government|politicians|voting age|inheritance tax|climate policy|abortion) (?:\\w+ ){0,3}(?:should|must|
            ought|need~|is|are|has|have|be), (?:stay~|abstain~) (?:home )?(?:on|from) (?:election day|voting),
            (?:join~|left|quit|resigned from) (?:\\w+ ){0,2}(?:labour|conservatives|greens|lib dems|union|party|
            tories), blockad~, strik(?:e|ing) (?:for|against), vote, voted, voting, votes, campaign~, canvass~,
            protest(?!ant)~, march~ (?:for|against|in|at), demonstrat~ (?:for|against), donated (?:\\w+
            ){0,4}(?:campaign|party), lean (?:left|right|conservative|liberal), sign(?:ed)? (?:\\w+ )?petition, ran
            for (?:office|council|mayor|parliament|congress), run(?:ning)? for (?:\\w+ )?(?:office|council|mayor|
            parliament|congress), support~ (?:\\w+ ){0,2}(?:party|trump|biden|brexit|president|government|greens|
            labour|republicans|democrats), (?:hate|can't stand|cannot stand|oppose|distrust|trust) (?:\\w+
            ){0,3}(?:government|president|party|politicians), joined (?:\\w+ ){0,2}(?:party|union|protest), believe
            in (?:socialism|communism|capitalism)""",
        "about": "",
        "any": """brexit, abortion, gun control, immigration policy, election, government, the republicans, the
            democrats, trump, biden, senate, parliament, prime minister, political party, demonstration against,
            protest march""",
        "told": """extinction rebellion, just stop oil, black lives matter, blm, antifa, amnesty international,
            greenpeace, the nra, fridays for future, union (?:member|meeting|dues|strike), election day, boycott~,
            tear-gassed, riot police, billionaires (?:should~|shouldn't), corporate greed, class struggle, working
            class, capitalist~, communist party, socialist~, independence (?:referendum|movement), state
            surveillance, police brutality, racial justice, voter (?:registration|suppression), local council, my
            vote, vote (?:for|against), abolish (?:the )?(?:monarchy|police|ice|lords), wealth tax, open borders,
            illegal immigra~, immigration, refugees, asylum seekers, austerity, capitalism, socialism, communism,
            fascis~, patriarchy, feminis~, activis~, protest(?!ant)~, demonstration, picket, petition, parliament,
            congress, senate, councillor, ballot, referendum, politic~, left-wing, right-wing, far right, far left,
            death penalty, monarchy, royal family, trade unions?, union rep, nato, the eu, eu membership, welfare
            state, gun laws, second amendment, climate (?:emergency|policy|action|activis~), voted, voting for, tory
            government, the mayor, prime minister, taxes that fund, as an? (?:\\w+ )?(?:socialist|communist|
            conservative|liberal|libertarian|anarchist|marxist|feminist|progressive|republican|democrat|leftist|
            trade unionist|pacifist|immigrant who votes), maga, labour party, the tories, tory, lib dems?, liberal
            democrats, ukip, reform uk, snp, sinn fein, plaid cymru, gop, the greens, the left party, (?:town|city|
            county|parish|district) council(?:lor)? (?:election|seat|candidate), (?:climate|peace|anti-war|women's|
            pride|blm|union) (?:march|protest|strike|rally|blockade|demo), (?:tax|taxing|taxed) (?:\\w+ ){0,2}the
            rich, the rich (?:\\w+ ){0,3}tax~, (?:both|every|all|neither) (?:the )?candidates? (?:\\w+ )?(?:make~|
            who|are|is|on the ballot), polling station, ballot box, picket line, obama, clinton, bernie, desantis,
            starmer, sunak, corbyn, farage, boris johnson, thatcher, macron, le pen, merkel, putin, zelensky,
            netanyahu, modi, erdogan, orban, meloni, trudeau, the president is, the referendum, asylum bill, asylum
            policy, foreign policy, migration policy, local elections?, general election, midterms""",
    },
    "sexuality": {
        "am": """(?:submissive|dominant) (?:in bed|one|side)?, on the (?:submissive|dominant) side, questioning my
            (?:gender|sexuality), out (?:to|at) (?:my|everyone|the|work), out and proud, closeted, a (?:man|woman|
            girl|guy) who (?:loves|likes|dates|sleeps), transitioning from, afraid of (?:sex|intimacy), no longer
            attracted, in love with (?:a|another) (?:woman|man|girl|guy), (?:a|the) (?:man|girl|woman|guy|boy)
            (?:too|as well|and my (?:husband|boyfriend|wife|girlfriend)), with (?:another )?(?:women|men|a woman|a
            man|girls|boys), seeing (?:two|three|several|other) (?:men|women|people|guys|girls), not straight,
            curious about (?:men|women|girls), into (?:her|him) sexually, dating (?:a|another|two|several) (?:man|
            men|woman|women|guy|guys|girl|girls), a late bloomer sexually, good in bed, bad in bed, still a virgin,
            sleeping around, in the lifestyle, hooking up, (?:only )?(?:ever )?with (?:men|women|girls|boys),
            demisexual, aromantic, a lesbian, a gay (?:man|woman), a bisexual ~, same-sex attracted, bicurious,
            bi-curious, heteroflexible, sapphic, butch, femme, submissive in bed, dominant in bed, a swinger, a sex
            worker, an escort, into (?:\\w+ )?(?:men|women|guys|girls|boys|both|bondage|kink~|being (?:tied|spanked|
            dominated|choked|humiliated)|leather|latex|roleplay|swinging|threesomes), tied up in bed, turned on,
            frigid, asexual, poly, ethically non-monogamous, non-monogamous, unfaithful, cheating, sleeping (?:with|
            together) (?:\\w+ )?(?:other people|some(?:one|body) else|again|anymore|him|her|each other), both
            (?:men|women|guys|girls|gay|lesbians), two (?:men|women) in love, intimate, not having sex, on (?:hrt|
            hormones|testosterone|estrogen), post-op, pre-op, cis, cisgender, a crossdresser, a drag queen, a trans
            ~, misgendered, sexually ~, seeing (?:a|another) married, the other woman, gay, lesbian, bisexual, bi,
            queer, straight, heterosexual, homosexual, pansexual, polyamorous, trans, transgender, a trans (?:man|
            woman), transitioning, nonbinary, non-binary, genderqueer, genderfluid, intersex, out to, in the closet,
            a virgin, celibate, kinky, on the pill, impotent, sexually active, attracted to, having an affair, in an
            open relationship, monogamous, aroused, horny, into bdsm, having sex, lgbt~""",
        "my": """marriage (?:is|has been) (?:\\w+ )?sexless, first kiss, first time, one-night, crush on, lovers,
            top surgery, transitioning, sexual past, partner's libido, exes are, first time with (?:a|him|her),
            orientation, sexual ~, sex ~, vibrator, dildo, sex toy, kinks, fantasies, coming-out, boyfriend's penis,
            penis, vagina, deadname, dysphoria, gay ~, lesbian ~, trans ~, bisexual~, asexual~, queer~, mistress,
            fling, hookup, hook-up, open marriage, open relationship, contraception, the pill, hormones, ex-lover,
            sexuality, sexual orientation, sexual identity, gender identity, sex life, sex drive, libido, virginity,
            pronouns, gender, transition, affair, birth control, contraceptive, iud, fetish, kink, first time having
            sex, coming out, lover, erection""",
        "have": """crush on (?:a|my|another) (?:\\w+ )?(?:girl|boy|woman|man|friend|boss|teacher|colleague),
            vibrator, dildo, sex toy, fling, hookup, hook-up, friends with benefits, a lover, lovers, an open
            (?:marriage|relationship), feelings for (?:men|women|another (?:man|woman)), desire for (?:any~|men|
            women|sex|him|her), crush on (?:a|another) (?:girl|boy|woman|man) even, sexual ~, sexless ~, an std,
            chlamydia, gonorrhoea, gonorrhea, syphilis, gender dysphoria, top surgery, bottom surgery, libido, sex
            drive, boyfriends and girlfriends, kinks, sex, affair, one-night stand, threesome, fetish, kink,
            erectile, orgasm, std, sti, iud, birth control, contraceptives, open relationship, condom, porn,
            intercourse""",
        "i": """(?:kiss|kissed|kissing) (?:a|another) (?:girl|boy|woman|man|guy), question~ my (?:gender|sexuality|
            orientation), (?:had|have) (?:something|anything) with a (?:woman|man|girl|guy), (?:tell|told) (?:\\w+
            ){1,3}(?:about my (?:girlfriend|boyfriend) being|i was (?:gay|bi|trans|queer)), bind my chest,
            dress(?:ed)? as a (?:woman|man), use(?:d)? (?:a )?(?:toys?|vibrator|dildo), buy (?:condoms|lube|toys),
            only (?:ever )?(?:been|slept|dated) with, (?:been|go|gone|went) to bed with, (?:can't|couldn't|cannot)
            (?:get it up|orgasm|climax|come|get hard|get aroused|stay hard), (?:never|not) (?:\\w+ )?been (?:kissed|
            touched|with (?:a|any~)), start(?:ed)? (?:testosterone|estrogen|hormones|hrt|transition~), (?:fancy|
            fancied|crush~ on|kissed) (?:a|another|this|my) (?:girl|boy|woman|man|guy|best friend|boss|colleague),
            (?:wasn't|weren't|am not|'m not) straight, undress~ me, (?:use|used|using) (?:\\w+ ){0,2}(?:condoms?|
            protection|contracepti~|lube), (?:pay|paid|visit~) (?:\\w+ ){0,2}(?:escort|prostitute|sex worker|
            brothel), role-?play~ in bed, been unfaithful, was unfaithful, (?:haven't|have not|never|not|don't|
            didn't|no longer|rarely|hardly) (?:\\w+ ){0,2}(?:slept together|sleep together|touched each other|been
            intimate|had sex|have sex|make love|made love|come|orgasm~), been intimate, (?:slept|sle(?:ep|eping)|in
            bed) with (?:\\w+ )?(?:someone|somebody|anyone|anybody|others?|people|men|women|him|her|a (?:\\w+
            )?(?:man|woman|guy|girl|strange~|colleague|coworker|friend)|my (?:\\w+ )?(?:boss|ex|boyfriend|
            girlfriend|wife|husband|neighbou?r|best friend|colleague|coworker|roommate|flatmate|teacher)|married),
            open(?:ed)? (?:up )?(?:our|the) (?:marriage|relationship), (?:try|tried|trying) (?:\\w+ ){0,2}(?:open
            (?:marriage|relationship)|swinging|anal|bondage|threesome|polyamory|viagra), (?:fancy|fancied|desire~|
            fantasi[sz]e~|prefer~|love|date|dated|dating|kiss(?:ed)?|fell in love with|fall in love with|falling
            for|fell for) (?:both |only |about |other )?(?:men|women|guys|girls|boys|another (?:man|woman|girl|boy|
            guy)), (?:like|liked) (?:both |only )?(?:men|women|girls|boys|guys), wank~, jerk~ off, sext~, (?:send|
            sent|sending) nudes, (?:had|have|having) (?:\\w+ ){0,2}sex, (?:don't|never|do not) (?:\\w+ )?(?:feel|
            felt|experience|want) (?:\\w+ ){0,3}(?:sex~|desire|attraction), cheat(?:s|ed|ing)? (?:on|with),
            fool(?:ed|ing)? around with, (?:pay|paid) for sex, hook(?:s|ed|ing)? up, tied up (?:in bed|during),
            turn(?:s|ed)? me on, crossdress~, cross-dress~, have feelings for (?:men|women|girls|boys|another),
            (?:tell|told|telling|tells) (?:\\w+ ){1,4}(?:i'm|i am|he's|he is|she's|she is|they're) (?:gay|bi|trans|
            lesbian|a lesbian|queer|bisexual), came out, come out to, come out as, coming out (?:to|as), slept with,
            sleep(?:ing)? with (?:him|her|them|men|women|other), cheated on, cheating on, hooked up, masturbat~,
            lost my virginity, watch~ (?:\\w+ ){0,3}porn~, identify as (?:\\w+ )?(?:gay|queer|trans~|bi~|straight|
            lesbian|male|female|a man|a woman), attracted to (?:\\w+ )?(?:men|women|guys|girls|him|her|boys), like
            (?:men|women|girls|boys), fall for (?:men|women), transitioned, made love, make love""",
        "about": "",
        "any": """lgbt~, transgender, gender identity, sexual orientation, sex life, erectile, grindr, tinder
            hookup, condom, one-night stand, porn, morning-after pill, gay, lesbian, bisexual""",
        "told": """the other woman, the other man, submissive side, my gender, misgender~, her pronouns, his
            pronouns, girlfriend's body, sexually, sex life, foreplay, one night stand, affair with, grindr, bumble
            date, polycule, metamour, nudist, lingerie, sexting, femininity, masculinity and, deadnam~, same-sex,
            homosexual~, homophob~, heterosexual, sexless, testosterone, estrogen, oestrogen, aroused, erection,
            nudes, onlyfans, brothel, dominatrix, strap-on, condoms?, lesbians?, gay, queer, trans (?:man|woman|guy|
            girl), transgender, bi-?curious, crush on (?:a|my|another) (?:girl|boy|woman|man|best friend), attracted
            to (?:men|women|both|him|her|girls|boys|other), physical intimacy, intimacy, one-night stands?,
            extramarital, having an affair, had an affair, an affair with, cheated on (?:me|him|her|my), slept with
            (?:his|her|my|a|the|another|someone|somebody|other), leather bar, drag (?:queen|show), sex club, wasn't
            straight, fell for a (?:girl|woman|man|boy|guy), sex(?! (?:of|ratio|chromosom~|education|offender~|
            discrimination|pistols|and the city)), asexual~, pansexual~, bisexual~, demisexual, polyamor~, open
            marriage, open relationship, vibrator, dildo, sex toy, libido, bdsm, bondage, threesome, swinger~,
            swinging (?:club|party), gay (?:bar|club|couple|man|men|son|brother|friend|wedding|marriage|community),
            girlfriend and i are both, boyfriend and i are both, both (?:women|men) and (?:in love|together|dating),
            viagra, orgasm~, masturbat~, in the bedroom (?:department|we|has|is), erotic~, lingerie for him,
            sexual~, pride (?:parade|month|march|event), gender dysphoria, nonbinary, non-binary, he is gay, he's
            gay, she is gay, she's gay, contraception, contraceptive, the coil, married (?:man|woman) (?:\\w+
            )?(?:affair|for years)""",
    },
    "location": {
        "am": """on the \\d+[:.]\\d+, camping (?:in|at|by|near|on), moored (?:in|at|on), staying with (?:\\w+
            ){1,3}in, back from, (?:just )?outside, on (?:my|our) way (?:to|home|back), nearly home, almost home,
            home (?:by|at|all), in town (?:until|till|for), two minutes from, five minutes from, (?:ten|fifteen|
            twenty|thirty) minutes from, a (?:short|ten-minute|five-minute) walk from, (?:originally )?from (?:a|an|
            the) (?:\\w+ ){0,2}(?:island|village|town|city|coast|part of|north|south|east|west), at the (?:\\w+
            )?(?:airport|station|border|hotel|campsite|hostel|bus stop|departure gate|train station), at gate,
            parked (?:outside|in|on|at|near|by), sat (?:in|at|on|outside), on (?:a|the) (?:\\w+ )?(?:train|bus|
            ferry|flight|plane|boat|tram|tube|coach|motorway)(?: \\w+)? (?:to|from|home|between), back home in,
            halfway (?:to|between|up), two (?:stops|streets|blocks) from, just round the corner, just around the
            corner from, (?:in|at) the (?:\\w+ )?(?:village|town|suburb|outskirts) of, a (?:local|native|resident)
            of, from around here, home (?:now|alone|until|from), out of town, abroad, on holiday in, on vacation in,
            on the (?:train|bus|plane|ferry|way) (?:to|from|home), stuck (?:in traffic|at the airport), at (?:home|
            the airport|the station|the hospital|the gym|the office) (?:right )?now, house-sitting, house-hunting
            in, renting (?:a|an) (?:\\w+ )?(?:flat|house|room|apartment|studio)""",
        "my": """(?:flat|house|apartment|office|room|shop|place)'s (?:above|on|in|at|near|opposite|next|behind|
            just), (?:office|school|gym|work|workplace|building|shop|studio|allotment|boat|house|flat|apartment|
            home|church|nursery|dentist)(?:'s|is|was) (?:\\w+ ){0,3}(?:in|on|at|near|opposite|behind|across|next to|
            between|above|below|by|off), allotment, mooring, houseboat, estate, front garden, driveway, floor is,
            terraced ~, semi, semi-detached ~, lodgings, digs, room in, balcony overlooks, window overlooks, window
            looks, bus stop, tube station, neighbou?rs in, place (?:is|in|on|near|at), cottage, building, street,
            village, block of flats, studio flat, bungalow, farm, cabin, caravan, dorm, dormitory, hostel, hotel,
            guesthouse, airbnb, holiday home, summer house, beach house, front doo~, doorstep, landlord, postcode,
            buzzer, doorbell, whereabouts, current location, location, local (?:pub|shop|park|library|gym|pool|
            station), home is (?:in|on|at|near), home in, nearest (?:station|bus stop|shop|supermarket), address,
            home address, zip code, zip, postal code, hometown, home town, apartment, flat, house, home country,
            place of birth, birthplace, coordinates, gps, commute, home base""",
        "have": "",
        "i": """get my (?:hair|nails|coffee|bread|papers?|groceries|veg|vegetables) (?:\\w+ ){0,2}(?:cut |done
            )?(?:in|at|from), arriv(?:e|es|ing) (?:in|at), moved (?:in|into|out|back|here|there|away|up|down)
            (?:\\w+ ){0,4}(?:yesterday|last|in|from|with|to|ago), (?:settle|settled|stuck) (?:down )?(?:here|in),
            (?:get|gets|catch|catches|take|takes|caught) (?:off )?the (?:\\w+:\\w+|\\w+ ){1,4}(?:from|bus|train|
            tram|metro|ferry), (?:drop|pick|drops|picks) (?:\\w+ ){1,4}(?:at|up from|off at), (?:rent|rented|
            renting|bought|buying|own|owns|built|sold|have|'ve got|share|sharing) (?:a|an|our|my|the) (?:\\w+
            ){0,3}(?:flat|apartment|house|room|cottage|studio|bungalow|villa|condo|cabin|farmhouse) (?:\\w+
            ){0,2}(?:in|on|near|at|by|outside|off|above|overlooking), (?:live|lives|lived|living) (?:\\w+
            ){0,3}(?:next|up|down|around|round|opposite|under|over) (?:the|from|in|to|a), (?:spend|spent|spends)
            (?:\\w+ ){0,3}(?:winter|summer|weekend|weekends|weeks|months|holidays|christmas|year|nights) (?:\\w+
            ){0,3}(?:in|at|on|with), sleep~ (?:at|in) (?:my|a|the) (?:\\w+ )?(?:car|van|hostel|shelter|tent|place|
            hotel), just (?:left|arrived|landed|parked|checked), coming home from, (?:live|lives|lived|living)
            (?:\\w+ ){0,5}(?:above|below|behind|opposite|outside|across|north|south|east|west|close|abroad),
            (?:stay|stayed|staying|stays) (?:\\w+ ){0,2}(?:in|at|with|near) (?:\\w+'?\\w* ){0,4}(?:hotel|hostel|
            airbnb|cabin|resort|flat|place|house|guesthouse|guest house|apartment|cottage|b&b|motel|inn|villa|
            campsite|until|till|for), (?:rent|rented|renting|bought|buying|own) (?:a|an|our|my|the) (?:\\w+
            ){0,3}(?:flat|apartment|house|room|cottage|studio|bungalow|villa|condo) (?:in|on|near|at|by),
            (?:mov(?:e|ed|ing)) (?:\\w+ ){0,2}(?:house|back home|out of|abroad|here from|here in|into (?:a|an|our|
            my|the)), grew up (?:\\w+ ){0,3}(?:in|near|on|outside), (?:sitting|waiting|standing) (?:\\w+
            ){0,3}(?:in|at|on|outside) (?:\\w+ ){0,4}(?:station|airport|platform|cafe|bus stop|terminal|gate|hotel|
            lobby|waiting room), settl(?:ed|ing) (?:down )?in, emigrat~, immigrat~, reloca~, (?:just )?(?:landed|
            arrived|checked in|checking in|touched down) (?:in|at|into), liv(?:e|es|ed|ing) (?:\\w+ ){0,4}(?:in|at|
            on|near|next to), reside in, (?:grew|growing) up (?:in|near|on), (?:was|were|am|are) (?:born|raised|
            based|located) (?:and \\w+ )?(?:in|near|at), born in, based in, (?:stay|stayed|staying) (?:\\w+
            ){0,2}(?:in|at|near) (?:a|an|the|my) (?:\\w+ )?(?:hotel|hostel|airbnb|cabin|resort|flat), (?:at|in) my
            (?:\\w+ )?(?:cabin|hotel|apartment|flat), (?:commut~) (?:from|to|by|via)""",
        "about": "",
        "place": """in, at, to, from""",
        "any": """zip code, home address, postal code, \\d+ \\w+ (?:street|avenue|road|lane|boulevard|drive|court),
            (?:flat|apartment|apt|unit|suite) \\d+\\w?""",
        "told": """\\d+[a-z]? (?:\\w+ ){1,3}(?:street|avenue|road|lane|boulevard|crescent|terrace|mews)""",
    },
    "family": {
        "am": """an uncle, an aunt, a grandmother, a grandfather, a great-aunt, an in-law, their only (?:son|
            daughter|child), the mother of, the father of, godmother to, godfather to, guardian of, the (?:middle|
            eldest|oldest|youngest|baby|second|third) (?:of|child|one|in), expecting (?:twins|our|a|my|in|another|
            number), dating, with (?:\\w+ )?(?:for|since) (?:\\w+ )?years, newly married, happily married, recently
            married, a (?:\\w+ )?(?:mother|father|mum|mom|dad|grandmother|grandfather|granny|grandad|stepmum|
            stepdad) (?:of|to|now), an only, in the middle of (?:a|my) divorce, childless, child-free, childfree,
            trying for (?:a|another), a stepmum, a stepdad, a stepmom, a dad of, a mum of, a mom of, a foster
            (?:mother|father|parent|carer), a new (?:mum|mom|dad|father|mother), an expectant, a house ?husband, a
            housewife, a widow, widow~, a great-grand~, a granny, a nan, remarried, estranged, orphaned, fostered,
            the (?:eldest|oldest|youngest|middle child|second of|only (?:son|daughter|child)), one of (?:two|three|
            four|five|six|seven|eight), pregnant with (?:our|my), related to, brought up by, raised by, newlyweds,
            in a custody, going through (?:a|my) (?:divorce|separation), married, divorced, widowed, a widower,
            separated, engaged, adopted, an only child, a single mother, a single mom, a single mum, a single
            father, a single dad, a single parent, a mother, a father, a mom, a dad, a mum, a parent, a grandma, a
            grandpa, a stepmother, a stepfather, a twin, an orphan, a stay-at-home, getting married, getting
            divorced, expecting our, expecting a""",
        "my": """partner and, partner's, partner of, partner is, little one, baby boy, baby girl, eldest's, kids',
            family's, late, twin, two (?:boys|girls|sons|daughters), three (?:boys|girls|sons|daughters), ancestors,
            surname, maiden name, mother's, mum's, dad's, father's, foster, fostering, guardian, ward, parents',
            wedding, engagement, nan, nana, nanna, gran, grandad, granddad, gramps, bro, sis, hubby, other half,
            better half, missus, ex, boyfriend, girlfriend, bride, groom, triplets, step-(?:mother|father|son|
            daughter|brother|sister|mum|mom|dad), half-sibling, stepkids, stepchildren, foster ~, adopti~ ~,
            biological ~, birth (?:mother|father|parents), godmother, godfather, godson, goddaughter, godchild,
            godparents, great-(?:aunt|uncle|grand\\w+), eldest, middle child, firstborn, teenager, in-law, mother in
            law, father in law, kin, lad, lads, girls (?:are|have|go|went|both), boys (?:are|have|go|went|both),
            anniversary, late (?:husband|wife|father|mother), household, separation, honeymoon, relationship with
            (?:my|him|her), clan, bloodline, wife, husband, spouse, ex-wife, ex-husband, fiance, fiancee, son, sons,
            daughter, kid, child, children, baby, babies, toddler, newborn, mother, father, mom, mum, dad, mommy,
            daddy, mama, papa, parents, parent, brother, sister, sibling, cousin, aunt, uncle, auntie, niece,
            nephew, grandmother, grandfather, grandma, grandpa, granny, grandparents, grandson, granddaughter,
            grandchild, grandchildren, grandkids, stepmother, stepfather, stepmom, stepdad, stepson, stepdaughter,
            stepbrother, stepsister, half-brother, half-sister, in-laws, mother-in-law, father-in-law,
            brother-in-law, sister-in-law, family, relatives, divorce, marriage, custody, folks, youngest, oldest,
            little ones, fam, family tree""",
        "have": """(?:two|three|four|five|six|seven|eight|an older|a younger|an elder|a big|a little|no|several|
            half|many) (?:\\w+ )?(?:brother|sister|boy|girl|cousin|uncle|aunt|kid|child|sibling|grandkid|daughter|
            son|children), a baby, granddaughter, triplets, foster child, foster children, stepkids, stepdaughter,
            stepsister, a big family, kids? with, boyfriend, girlfriend, fiance, fiancee, in-laws, son, sons,
            daughter, (?:a|one|our) child, kids, children, twins, brother, sister, sibling, siblings, stepson,
            grandchildren, grandkids, custody, wife, husband, family, niece, nephew, cousin, newborn""",
        "i": """named (?:her|him), lost the baby, share~ custody, (?:look|looks|looking) after my (?:\\w+
            )?(?:mother|father|mum|dad|parents|kids|children), argu(?:e|ed|ing) with my, fell out with my, been with
            (?!the|a|an|this|my|our)\\w+ (?:for|since), been married, (?:had|have|having) (?:our|my|a) (?:first|
            second|third|fourth)?\\s?(?:baby|child|kid|son|daughter|boy|girl)(?! ?(?:photo|picture)), haven't
            (?:seen|spoken to|heard from) my, grew up without, took (?:his|her|my husband's) (?:name|surname), met
            my, (?:grew up|live|lives|lived|living) with (?:\\w+ )?(?:grand~|aunt|uncle|mother|father|parents|mum|
            mom|dad|foster ~), adopted \\w+ (?:when (?:he|she|they) (?:was|were)|as a baby|at birth|from (?:foster|
            care))(?!.*\\b(?:dog|pup|cat|kitten|shelter|breed)), foster(?:ed|ing)? (?:a|two|three|children|kids),
            (?:became|become|becoming) (?:a|an) (?:\\w+ )?(?:mother|father|mum|mom|dad|parent|uncle|aunt|gran~|
            grandparent), remarr~, separated from (?:my|him|her), split (?:up )?(?:with|from) my, divorc(?:ed|ing),
            elop~, (?:raise|raised|raising|brought up|bringing up) (?:\\w+ ){0,3}(?:kids?|child|children|son~|
            daughter~|boys?|girls?|twins|alone), (?:was|were) (?:raised|brought up) by, lost (?:\\w+ )?(?:baby),
            babysit~ (?:\\w+ )?(?:grand~|niece~|nephew~), (?:'m|am|are|were|was) married, married to, got married,
            get married, getting married, got divorced, get divorced, getting divorced, got engaged, adopt(?:ed|
            ing)? (?:a|our|my|two|three) (?:\\w+ )?(?:girl|boy|child|children|kid|kids|baby|son|daughter), gave
            birth, proposed to""",
        "about": "the (?:wife|husband|missus)",
        "any": """custody of, (?<!his )(?<!her )(?<!your )(?<!their )(?:mum|mom|dad|grandma|grandpa)""",
        "told": """married for, married since, been married, ex-wife, ex-husband, stepson, stepdaughter, stepmother,
            stepfather, fianc[eé]e?, custody, fostering, adoptive parents, birth mother, only child, family tree,
            maiden name, expecting twins, family (?:reunion|dinner|trip|road trip|holiday|christmas|home), the
            divorce, divorce papers, the in-laws, the grandchildren, the grandkids, the twins, joint custody,
            (?:mother|father|sister|brother|daughter|son)[- ]in[- ]law, wedding anniversary, (?:nan|nana|gran|
            granny|grandad|granddad) (?:is|was|had|has|died|passed|always|used)""",
    },
    "work": {
        "am": """a (?:postie|bobby|sparky|brickie|chippy|copper|squaddie|lollipop lady|dinner lady|cabbie|barrister|
            childminder|dental nurse|nanny|cleaner|waiter|server), starting at \\w+, starting (?:a|my) (?:new
            )?(?:job|role|position|internship|apprenticeship), short-handed, quitting, leaving my job, an intern,
            interning, contracting, on the (?:late|early|night|day) (?:desk|team|rota), (?:a|the) (?:sales|project|
            office|shop) ~, signing off (?:late|early) from, between jobs, out of work, off work, back at work,
            (?:just )?(?:been )?made (?:head|partner|manager|permanent|supervisor|director|captain|team), head of
            (?:\\w+ )?(?:department|marketing|sales|hr|year|english|maths|science|it|security|finance), training
            (?:to be|to become|as), the (?:\\w+ )?(?:manager|director|head|owner|supervisor|boss|foreman|secretary|
            receptionist) (?:of|at|for|here|in), behind on (?:a|my) (?:\\w+ )?(?:project|deadline), drowning in
            (?:work|emails), snowed under, overworked, burned out (?:at|from) work, a plumber by, self-employed,
            setting up (?:a|my), writing my (?:thesis|dissertation|cv), working there, working here, a stay-at-home
            ~, on strike at, in the (?:army|navy|air force|marines|police force|fire service|civil service), made
            redundant, sacked, fired, on probation, on parental leave, on maternity leave, on paternity leave, on
            gardening leave, on a zero-hours, on call, on shift, on the (?:\\w+ )?shift, working (?:\\w+
            ){0,2}(?:shift~|nights|late|weekends|two jobs|for|as|at|in|from), self employed, a freelance, a
            contractor, semi-retired, job hunting, job-hunting, hiring, interviewing, being (?:promoted|made
            redundant|transferred|laid off), up for promotion, understaffed, short-staffed, employed, a temp, a
            trainee, an apprentice, a foreman, an au pair, a bricklayer, a joiner, a taxi driver, a cabbie, a
            surveyor, a solicitor, a barrister, a paralegal, a magistrate, a civil servant, a teaching assistant, a
            headteacher, a headmaster, a headmistress, a principal, a tradesman, a builder, a labourer, a laborer, a
            painter and, a decorator, a postwoman, a courier, a steward, a stewardess, a flight ~, a shopkeeper, a
            salesman, a saleswoman, a rep, a marketer, a recruiter, a sysadmin, a (?:\\w+ ){0,2}(?:(?:data|project|
            product|store|shop|sales|marketing|office|warehouse|factory|machine|kitchen|lab|hr|it|care|nursery|
            devops|security|research|customer|quality|healthcare|bank|support|account|head|pastry|sous|dental)
            (?:manager|engineer|analyst|scientist|designer|worker|assistant|technician|operator|clerk|chef|owner|
            lead|officer|handler|hand|porter|nurse|teacher|rep|representative|executive|person|guard|agent|
            specialist|consultant)|\\w+(?:ologist|ographer|ician|smith|wright|worker|fitter)), a locksmith, a
            lifeguard, a soldier, a veteran, a fisherman, a miner, a seamstress, a curator, a conductor, a train
            driver, a bus driver, a lorry driver, a truck driver, a trucker, a dog walker, a childminder, a carer, a
            radiographer, a dental ~, a stylist, a beautician, a masseuse, a personal trainer, a referee, a priest,
            a bookkeeper, an auditor, an actuary, an underwriter, an estate agent, an insurance ~, a supervisor, a
            (?:team|shift|store|branch|office|line|bank|hotel|restaurant) (?:lead|leader|manager), a partner at, a
            copywriter, a proofreader, a composer, a screenwriter, a novelist, a reporter, a (?:web|graphic|fashion|
            game|interior) ~, a sous ~, a pastry ~, a postdoc, a phd student, in charge of (?:\\w+ )?(?:team|
            department|marketing|sales|staff), in (?:sales|marketing|hr|logistics|retail|construction|nursing|
            finance|banking|insurance|real estate|hospitality), unemployed, freelance, a freelancer, freelancing,
            retired, laid off, hired, promoted, out of a job, on the night shift, working on a deadline, a
            (?:[\\w-]+ ){0,2}(?:engineer|teacher|nurse|lawyer|accountant|developer|programmer|designer|manager|
            analyst|consultant|waiter|waitress|chef|cook|driver|electrician|plumber|carpenter|mechanic|journalist|
            writer|editor|photographer|architect|scientist|researcher|professor|lecturer|student teacher|
            salesperson|cashier|clerk|secretary|assistant|receptionist|pilot|soldier|firefighter|police officer|
            paramedic|pharmacist|veterinarian|librarian|translator|illustrator|farmer|baker|barista|bartender|
            hairdresser|social worker|contractor|founder|ceo|cto|director|entrepreneur|landlord|realtor|broker|
            banker|economist|adviser|advisor|optician|porter|guard|attendant|tailor|butcher|florist|gardener|
            cleaner|caretaker|nanny|midwife|dentist|doctor|surgeon|therapist|psychologist|judge|officer|sailor|
            postman|plasterer|roofer|welder|machinist|technician|beekeeper|actor|actress|musician|singer|dancer|
            tutor|coach|trainer|biologist|chemist|physicist|counselor)""",
        "my": """workplace, firm's, boss's, manager's, contract (?:runs|ran|is|ends|expires|got|was), books are,
            thesis supervisor, apprentices, employees, farm, herd, fleet, truck, taxi, cab, round, clinic,
            classroom, year group, class of, students, trainees, new role, role as, role at, position at, post at,
            hours (?:got|were|have|are), performance, workday, working day, work week, workweek, lunch break at,
            break room, pay grade, out of office, payslip, line manager, team leader, coworkers, colleagues,
            workmates, workmate, foreman, head of department, apprenticeship, apprentice, trainee, traineeship,
            rota, notice, notice period, probation, probation period, overtime, salon, shop, bakery, restaurant,
            firm, practice manager, branch, staff, payroll, superior, cubicle, desk job, hours at work, paid leave,
            annual leave, maternity leave, redundancy, dismissal, severance, appraisal, deadline at work, working
            hours, work hours, trade, industry, recruiter, interview, commute, promotion, pay review, workshop,
            patients, pupils, parishioners, customers, boss, manager, supervisor, colleague, coworker, co-worker,
            job, jobs, employer, employee, company, client, clients, career, profession, office, startup, business,
            internship, resume, cv, contract, shift, team lead, workload, department, interviewer, store,
            performance review, resignation, work schedule, day job, side hustle, occupation""",
        "have": """a (?:written|verbal|final) warning, a disciplinary, a (?:permanent|temporary|zero-hours|
            fixed-term) contract, a client, a big client, a presentation (?:at|for) (?:work|my|the), a work call,
            back-to-back meetings, meetings all, my appraisal, appraisal, a new job, the job, two jobs, a
            performance ~, work (?:tomorrow|today|tonight|until|till|trip|deadline|meeting|event|on), a client ~, a
            deadline, deadlines, an offer from, staff, interview, second interview, a new boss, a deadline at, a
            meeting with (?:my|our|the) (?:boss|manager|client|team), colleagues, coworkers, shift, early shift,
            late shift, a desk job, a staff of, overtime, a side job, three jobs, a part-time, an apprenticeship, a
            contract, clients, job, jobs, job interview, job offer, internship, interview at, meeting with my boss,
            promotion, interview for, employees, night shift, business trip, work trip, gig""",
        "i": """(?:mop|sweep|pack|load|sort|serve|cook|guard|pick|operate|assemble|weld|type|file|nurse|paint|wash|
            iron|cut|sew|stack|fill)s? (?:\\w+ ){0,3}(?:at|in|for) (?:a|an|the) (?:\\w+ )?(?:hospital|factory|
            warehouse|school|hotel|restaurant|office|supermarket|shop|store|bakery|salon|laundry|garage|farm|plant|
            mill|canteen|clinic|bank|pub|bar|cafe), cover (?:the|for) (?:\\w+ ){0,3}(?:desk|shift|shifts|ward|
            colleague), told my (?:manager|boss|supervisor), make (?:\\w+ ){1,2}for a living, start~ at \\w+ (?:on|
            next|in|as), (?:got|get|gets) (?:\\w+ )?(?:a raise|promoted|demoted|transferred|poached|headhunted|a
            written warning|a permanent), (?:sell|sells|sold) (?:\\w+ ){1,3}at (?:\\w+ )?markets?, drive(?:s)? (?:a|
            the) (?:\\w+ ){0,2}(?:truck|lorry|bus|taxi|cab|van|forklift|tram|train|ambulance|crane|tractor),
            drive(?:s)? for (?:uber|lyft|a living|a|deliveroo|amazon), (?:do|did|doing) (?:the|their|our) (?:books|
            accounts|payroll|cleaning|catering|night shift) (?:for|at), look(?:s|ed|ing)? after (?:a|the|two|three)
            (?:\\w+ )?(?:farm|shop|team|accounts?|patients|children for|clients), (?:fly|flies|flew) (?:planes|for
            (?:a|an) (?:\\w+ )?airline), (?:train|trained|training|retrained|qualified|studied) (?:to be|to become|
            as), (?:got|get|landed|took|turned down|accepted|start|started|lost|quit|left) (?:the|a|my|this|that)
            (?:\\w+ )?(?:job|position|role|post|offer|gig|internship), had to (?:fire|let|sack|lay off), (?:had|
            have) to let (?:\\w+ ){1,4}go, (?:report|reports|answer) to (?:a|the|my) (?:\\w+ )?(?:manager|director|
            boss|head), worked (?:there|here|for them|nights|my way up|in|at|as|for) (?:\\w+ ){0,4}(?:years|months|
            since|until|company|factory|industry|sector|office|bank|shop|restaurant|hospital|school|call centre),
            work (?:in|at) (?:a|an|the|\\w+) (?:\\w+ ){0,2}(?:centre|center|office|bank|shop|store|factory|
            warehouse|restaurant|cafe|hospital|school|library|museum|lab|agency|firm|company|industry|sector|
            department|kitchen|bar|hotel|nursery|clinic|law|finance|marketing|tech|it|retail|construction), (?:sell|
            make|build|design|repair|mend|fix|install|fit) (?:\\w+ ){1,3}for (?:clients|customers|a company|a firm|a
            living), (?:graduate|graduated) as (?:a|an), been (?:a|an) \\w+(?: \\w+)? (?:for|since) (?:\\w+
            )?(?:years|decades|\\d+), doing it for (?:\\w+ )?years, moonlight~, side hustle, (?:teach|teaches|
            taught) (?:\\w+ ){0,4}(?:to|at|in|grade~|class~|school~|pupils|students|children|kids|undergraduates|
            evening|primary|maths?|english|history|chemistry|physics|biology|french|german|music|geography),
            clean(?:s|ed|ing)? (?:\\w+ )?(?:offices|houses|hotel rooms|rooms|schools|for a living), (?:drive|drives|
            drove|driving) (?:a|an|the|for) (?:\\w+ )?(?:lorry|truck|taxi|cab|bus|forklift|van for|tram|train|
            delivery|uber|lyft|ambulance|hgv), deliver(?:s|ed|ing)? (?:parcels|packages|pizza|pizzas|food|mail|the
            post|newspapers|babies), (?:wait|waits|waited|waiting) (?:on )?tables, (?:tend|tends|tended) bar,
            stack(?:s|ed|ing)? shelves, (?:sell|sells|sold|selling) (?:insurance|cars|houses|real estate|shoes|
            flowers|software|furniture|tickets|advertising), (?:cut|cuts) hair, (?:fix|fixes|repair|repairs|build|
            builds|design|designs|write|writes|translate~|edit|edits) (?:\\w+ ){0,3}for a living, (?:cook|cooks|
            cooked|bake~) (?:at|in|for) (?:a|an|the) (?:\\w+ )?(?:restaurant|hotel|canteen|bakery|school),
            freelanc~, temp(?:s|ed|ing)? (?:at|for), nurs(?:e|es|ed) (?:at|in|on), (?:work|worked|working) (?:\\w+
            ){0,2}(?:as an?|at (?:a|an|the)|for (?:a|an|the)|night~|shift~|weekend~|overtime|two jobs|part-time|
            full-time|part time|full time|remotely|freelance), (?:was|were|got|been|being) (?:\\w+ )?(?:let go(?!
            of)|sacked|made redundant|laid off|fired(?! up)|furloughed|headhunted|hired|passed over|transferred|
            demoted|promoted), (?:hand~|gave|give|giving|put~) in (?:my|his|her|our|their) (?:notice|resignation),
            (?:gave|give|giving) (?:my|his|her|two weeks'?|a month's) notice, resign~, (?:had|have|got|going for|
            went for|prepar~ for) (?:\\w+ ){0,4}(?:job )?interview, (?:quit|left|leaving|leave|join~|start~) (?:\\w+
            ){0,3}(?:job|company|firm|agency|factory), (?:run|runs|own|owns|open~|manag~|set up|sold|bought) (?:a|
            an|my|our|the) (?:\\w+ ){0,3}(?:business|company|startup|store|shop|studio|firm|bakery|restaurant|
            agency|farm|salon|cafe|bar|pub|garage|practice|workshop|hotel|guesthouse|nursery|stall|team), manag(?:e|
            es|ed) (?:\\w+ ){0,3}(?:team|people|staff|department|office|warehouse|branch), (?:study|studying|train~|
            qualif~|apprenticed|retrain~) (?:to be|to become|as) an?, (?:spent|spend) (?:\\w+ ){0,3}years (?:\\w+
            )?(?:as an?|in (?:sales|nursing|teaching|the army|the navy|banking|retail)|behind), (?:clock|clocked|
            clocking) (?:in|off|out), supervis~ (?:\\w+ ){0,3}(?:people|staff|team|students), served in the (?:army|
            navy|air force|police), call(?:ed|ing)? in sick, (?:ask|asked|asking) for (?:a|my) (?:raise|promotion|
            transfer), look(?:ing)? for (?:\\w+ ){0,2}(?:job|work|position|internship), (?:wrote|writing|updating|
            sent|sending) (?:\\w+ ){0,2}(?:cv|resume|cover letter), on (?:night|day|late|early) (?:shift|shifts|
            rotation), paralegal, work (?:as|at|for|in|with (?:children|kids|people|clients|patients|animals|horses|
            students|the)|from|on the|part|full|nights|night), worked (?:as|at|for|in) (?:a|an|the), working (?:as|
            at|for|from|out of|remotely|full|part|overtime|nights), got (?:\\w+ )?(?:fired|laid off|promoted|hired|
            job|the job), (?:quit|lost|left|start|started|starting|change|changed|changing|found|landed) (?:\\w+
            ){0,2}(?:job|jobs), (?:run|own|started|founded|manage|opened|opening|running|starting) (?:\\w+
            ){0,3}(?:business|company|startup|store|shop|studio|firm|bakery|restaurant|agency|team), handed in my
            notice, resigned, appl(?:y|ied|ying) for (?:\\w+ ){0,3}(?:job|position|role|post), got a raise, teach
            at, teach in, (?:teach|taught) (?:\\w+ )?(?:grade|class|classes|school), retired, intern(?:ed|ing) at,
            doing an internship, quit (?:my|the|this) (?:job|company|position)""",
        "about": """turned (?:me|us) down for (?:\\w+ ){0,3}(?:job|post|role|position|promotion|raise), took credit
            for my, (?:wants|asked|made|makes|told) (?:me|us) (?:to )?(?:\\w+ ){0,2}(?:work|come in|stay late|do
            overtime|cover), (?:promot~|hir(?:ed|ing)|fir(?:ed|ing)|sack~|furlough~|interview~|transfer~|demot~|
            headhunt~|employ~|underpa(?:id|ys?)) (?:me|us), (?:made|make|making) (?:me|us|him|her) (?:redundant|team
            lead~|manager|head|permanent|partner), pass~ (?:me|us) over, let (?:me|us) go (?:from|after|last|by|
            yesterday), laid (?:me|us) off, (?:offer~|gave|give|giving|got) (?:me|us|him|her) (?:\\w+ ){0,3}(?:job|
            position|post|role|promotion|raise|contract|shift~|notice|sack|internship), cut (?:my|her|his|our|their)
            (?:hours|shifts|pay), (?:took|take) (?:me|us) on as, work~ (?:me|us) (?:to death|hard)""",
        "any": "job interview, in my office, my shift, at work, day job, laid off",
        "told": """as an? (?:\\w+ ){0,2}(?:engineer|teacher|nurse|lawyer|accountant|developer|programmer|designer|
            manager|analyst|consultant|waiter|waitress|chef|cook|driver|electrician|plumber|carpenter|mechanic|
            journalist|writer|editor|photographer|architect|scientist|researcher|professor|lecturer|cashier|clerk|
            secretary|receptionist|paramedic|pharmacist|librarian|translator|barista|bartender|hairdresser|social
            worker|cleaner|caretaker|nanny|midwife|technician|tutor|carer|builder|butcher|baker|guard|surveyor|
            solicitor|paralegal|supervisor|trainee|temp|freelancer|contractor), written warning, disciplinary,
            short-staffed, understaffed, night desk, my clients?, my boss, shop floor, zero hours, hired me, laid
            off, made redundant, a promotion at, the depot, union meeting at work, off work, back to work, after
            work, before work, (?:the|this|that|new|old|first|current|last|dream|part-time|full-time) job(?!
            (?:done|for me|of)), jobs?cent(?:re|er), freelanc~, the staff, staffing, my staff, my team at, in the
            workplace, call cent(?:re|er), the company i, my employer, (?:team lead|supervisor|manager) (?:took|
            wants|told|asked|gave|said|keeps|is|has), night duty, on duty, shift (?:work|pattern|starts|ends|swap),
            deadline at work, annual leave, payroll, union rep, zero-hours, retirement party, retired, (?:night|
            late|early|double|graveyard|morning|evening|split|day) shifts?, the new (?:manager|boss|director|ceo|
            supervisor|team lead~|head of), staff meeting, team meeting, staff room, notice period, probation
            period, redundan~, layoffs, severance, resignation letter, cover letter, pay rise, performance review,
            line manager, job offer, job search, job hunt, job application, (?:job|second|final|first) interview,
            interview (?:on|for|with|at) (?:\\w+ ){0,6}(?:job|position|post|role|company|firm|monday|tuesday|
            wednesday|thursday|friday), on the ward, at the office, in the office, open-plan office, coworkers?,
            colleagues?, parental leave, maternity leave, work trip, business trip, apprenticeship, at the firm""",
    },
}
"""By topic: the kinds of terms, each with its terms."""
