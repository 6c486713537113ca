"""Words of similar meaning, offered to a person who wants a word never remembered. They tick those that they mean."""

from typing import Final

from store.text.word_forms import word_forms

_GROUPS: Final = """doctor, physician, GP, specialist|hospital, clinic|medicine, medication, drug, pill
illness, disease, sickness, condition|therapy, therapist, counselling, psychologist, psychiatrist
cancer, tumour, chemotherapy, oncologist|pregnant, pregnancy, expecting
miscarriage, abortion, stillbirth|depression, depressed, antidepressant|anxiety, panic attack
alcohol, drinking, drunk, booze|diabetes, insulin, blood sugar|weight, diet, obesity|suicide, self-harm
HIV, AIDS|divorce, separation, custody|ex, ex-husband, ex-wife, former partner|wife, spouse, partner
husband, spouse, partner|girlfriend, partner|boyfriend, partner|mother, mum, mom|father, dad
child, kid, son, daughter|sibling, brother, sister|parents, family|affair, cheating, infidelity
sex, intimacy|gay, lesbian, homosexual, queer|trans, transgender, transition|salary, income, wage, pay
debt, loan, credit|mortgage, rent|bank, account|money, finances, cash|taxes, tax return
bankruptcy, insolvency|inheritance, will, estate|job, work, position|boss, manager, supervisor
colleague, coworker|fired, laid off, dismissed|unemployed, jobless|company, employer, firm
church, parish, congregation|god, faith, religion|mosque, imam|prayer, praying|election, vote, ballot
party, politics|protest, demonstration|address, street, home|school, kindergarten|police, arrest, prison
lawyer, attorney, court, lawsuit|Arzt, Ärztin, Doktor|Krankenhaus, Klinik|Medikament, Tablette
Krankheit, Erkrankung|Therapie, Psychologe, Psychiater|schwanger, Schwangerschaft
Scheidung, Trennung, Sorgerecht|Gehalt, Lohn, Einkommen|Schulden, Kredit, Darlehen|Chef, Vorgesetzter
Kollege, Kollegin|Kirche, Gemeinde|Wahl, Partei|Alkohol, trinken|Frau, Ehefrau|Mann, Ehemann
Kind, Sohn, Tochter|医生, 大夫|医院, 诊所|药, 药物|病, 疾病|癌, 癌症, 肿瘤, 化疗|抑郁, 抑郁症|怀孕, 孕妇
离婚, 分居, 抚养权|前妻, 前夫, 前任|老婆, 妻子, 太太|老公, 丈夫, 先生|孩子, 儿子, 女儿|妈妈, 母亲
爸爸, 父亲|工资, 薪水, 收入|债, 欠债, 贷款|房贷, 按揭|老板, 领导, 上司|裁员, 失业, 辞退|同性恋, 出柜
酒, 喝酒|地址, 住址|投票, 选举|教会, 教堂"""
_WORDS: Final = [tuple(one.strip() for one in group.split(",")) for group in _GROUPS.replace("\n", "|").split("|")]


def similar_to(word: str) -> list[str]:
    """Return words of similar meaning that are known, without the word itself."""
    forms = word_forms((word,))
    groups = [group for group in _WORDS if any(forms.are_in(one) and word_forms((one,)).are_in(word) for one in group)]
    return list(dict.fromkeys(one for group in groups for one in group if not forms.are_in(one)))
