"""Relative expressions of time, counted from Wednesday, 10 June 2026."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.text.normalize import fold
from store.text.time_rules import RECENT_DAYS
from store.text.times import message_tokens, query_times
from store.text.tokens import tokenize

NOW = datetime(2026, 6, 10, 9, tzinfo=UTC)
RECENT = f"{NOW.date() - timedelta(RECENT_DAYS)}..2026-06-10"

READ = [
    # Spanish, French, Portuguese
    ("¿Qué cené ayer?", "06-09"),
    ("¿Qué me compré anteayer?", "06-08"),
    ("¿A quién visité la semana pasada?", "06-01..06-07"),
    ("¿Qué hago la semana que viene?", "06-15..06-21"),
    ("Qu'ai-je fait hier soir ?", "06-09"),
    ("Qu'ai-je perdu avant-hier ?", "06-08"),
    ("Que s'est-il passé le mois dernier ?", "2026-05"),
    ("O que eu vendi anteontem?", "06-08"),
    ("Onde estive no mês passado?", "2026-05"),
    ("O que faço depois de amanhã?", "06-12"),
    ("Há dois dias comprei o quê?", "06-08"),
    # English
    ("What did I do yesterday?", "06-09"),
    ("What did I book yesterday?", "06-09"),
    ("What happened at Christmas in 2024?", "2024-12-24..2024-12-26"),
    ("Where did I hike last summer, in 2024?", "2024-06..2024-08"),
    ("去年国庆我去了哪里？", "2025-10-01..2025-10-07"),
    ("What did we decide in yesterday's meeting?", "06-09"),
    ("Who called yesterday evening?", "06-09"),
    ("What did I cook last night?", "06-09"),
    ("What did I eat today?", "06-10"),
    ("What is on today's list?", "06-10"),
    ("Where was I this morning?", "06-10"),
    ("What are we doing tonight?", "06-10"),
    ("What have I planned tomorrow?", "06-11"),
    ("Who comes tomorrow morning?", "06-11"),
    ("Who came the day before yesterday?", "06-08"),
    ("What is the day after tomorrow?", "06-12"),
    ("What did I buy last week?", "06-01..06-07"),
    ("What did I buy in the last week?", "06-01..06-07"),
    ("What was last week's topic?", "06-01..06-07"),
    ("What do I do this week?", "06-08..06-14"),
    ("Where do I travel next week?", "06-15..06-21"),
    ("What did we plan the week before last?", "05-25..05-31"),
    ("Where am I the week after next?", "06-22..06-28"),
    ("Where did I go last weekend?", "06-06..06-07"),
    ("What do we do this weekend?", "06-13..06-14"),
    ("Who visits next weekend?", "06-20..06-21"),
    ("What did I read last month?", "2026-05"),
    ("What do I read this month?", "2026-06"),
    ("What starts next month?", "2026-07"),
    ("What happened the month before last?", "2026-04"),
    ("Where did I travel last year?", "2025"),
    ("What are my goals this year?", "2026"),
    ("Where will I live next year?", "2027"),
    ("Where did I live the year before last?", "2024"),
    ("Who called 3 days ago?", "06-07"),
    ("Who called three days ago?", "06-07"),
    ("Who called a day ago?", "06-09"),
    ("Who called one week ago?", "05-31..06-06"),
    ("Who called Ann's and Tom's friend yesterday?", "06-09"),
    ("今天线上开什么会？", "06-10"),
    ("What did I write two hours ago?", "06-10"),
    ("What did I do 24 hours ago?", "06-09"),
    ("What did I repair ten days ago?", "05-30..06-01"),
    ("What did I say a week ago?", "05-31..06-06"),
    ("What did I say two weeks ago?", "05-24..05-30"),
    ("What did I say a fortnight ago?", "05-24..05-30"),
    ("What did I buy a month ago?", "2026-05 04-30..05-20"),
    ("What did I buy two months ago?", "2026-04 03-31..04-20"),
    ("What did I buy 2 months back?", "2026-04 03-31..04-20"),
    ("What did I study half a year ago?", "2025-12 2025-11-30..2025-12-20"),
    ("Where did I work two years ago?", "2024"),
    ("Who wrote a few days ago?", "06-04..06-08"),
    ("Who wrote a couple of days ago?", "06-07..06-09"),
    ("Who wrote a few weeks ago?", "04-29..05-27"),
    ("What did I do over the last 3 days?", "06-07..06-10"),
    ("What did I do in the past two weeks?", "05-27..06-10"),
    ("What did I do during the last few days?", "06-04..06-10"),
    ("What did I do in the past week?", "06-03..06-10"),
    ("What did I do the past month?", ""),
    ("What do I have in the next 3 days?", "06-10..06-13"),
    ("What did I do last Tuesday?", "06-09 06-02"),
    ("What did I do last Friday?", "06-05"),
    ("What do I do next Friday?", "06-12 06-19"),
    ("What do I do next Monday?", "06-15"),
    ("What do I do this Friday?", "06-05 06-12"),
    ("What do I have on Friday?", "06-05 06-12"),
    ("What do I have on Wednesday?", "06-10 06-03 06-17"),
    ("Where was I Saturday night?", "06-06 06-13"),
    ("What must be done by Monday?", "06-08 06-15"),
    ("What did I do Tuesday last week?", "06-02"),
    ("What did we do at the weekend?", "06-13..06-14 06-06..06-07"),
    ("What is due in 3 days?", "06-13"),
    ("Where am I in two weeks?", "06-21..06-27"),
    ("What is 3 days from now?", "06-13"),
    ("Where was I last March?", "2026-03"),
    ("Where was I last August?", "2025-08"),
    ("Where did I swim last summer?", "2025-06..2025-08"),
    ("Where do I go this summer?", "2026-06..2026-08"),
    ("What have I read recently?", RECENT),
    ("What am I working on lately?", RECENT),
    ("What did I do in recent days?", "06-03..06-10"),
    ("whar did i do yeserday?", "06-09"),
    # German
    ("Was habe ich gestern gemacht?", "06-09"),
    ("Was habe ich gestern Abend gekocht?", "06-09"),
    ("Wer hat vorgestern angerufen?", "06-08"),
    ("Was esse ich heute?", "06-10"),
    ("Was habe ich heute Morgen gegessen?", "06-10"),
    ("Was mache ich morgen?", "06-11"),
    ("Was mache ich morgen früh?", "06-11"),
    ("Was mache ich übermorgen?", "06-12"),
    ("Was mache ich uebermorgen?", "06-12"),
    ("Was habe ich letzte Woche gekauft?", "06-01..06-07"),
    ("Was habe ich in der letzten Woche gekauft?", "06-01..06-07"),
    ("Was habe ich vergangene Woche im Büro gemacht?", "06-01..06-07"),
    ("Was mache ich diese Woche?", "06-08..06-14"),
    ("Wohin reise ich nächste Woche?", "06-15..06-21"),
    ("Wohin reise ich naechste Woche?", "06-15..06-21"),
    ("Wohin reise ich kommende Woche?", "06-15..06-21"),
    ("Was war letztes Wochenende?", "06-06..06-07"),
    ("Was war am letzten Wochenende?", "06-06..06-07"),
    ("Was war am Wochenende?", "06-13..06-14 06-06..06-07"),
    ("Was las ich letzten Monat?", "2026-05"),
    ("Was las ich im letzten Monat?", "2026-05"),
    ("Was beginnt nächsten Monat?", "2026-07"),
    ("Was will ich dieses Jahr?", "2026"),
    ("Wo war ich letztes Jahr?", "2025"),
    ("Wo lebe ich nächstes Jahr?", "2027"),
    ("Wer rief vor drei Tagen an?", "06-07"),
    ("Was sagte ich vor einer Woche?", "05-31..06-06"),
    ("Was sagte ich vor zwei Wochen?", "05-24..05-30"),
    ("Was kaufte ich vor zwei Monaten?", "2026-04 03-31..04-20"),
    ("Was kaufte ich vor einem Monat?", "2026-05 04-30..05-20"),
    ("Wo arbeitete ich vor zwei Jahren?", "2024"),
    ("Wer schrieb vor ein paar Tagen?", "06-04..06-08"),
    ("Was war in den letzten drei Tagen?", "06-07..06-10"),
    ("Was war letzten Dienstag?", "06-09 06-02"),
    ("Was ist nächsten Montag?", "06-15"),
    ("Was ist am Freitag?", "06-05 06-12"),
    ("Was ist am Freitagabend?", "06-05 06-12"),
    ("Wo war ich letzten Sommer?", "2025-06..2025-08"),
    ("Was ist in drei Tagen?", "06-13"),
    ("Was habe ich kürzlich gelesen?", RECENT),
    ("Was habe ich neulich gelesen?", RECENT),
    # Chinese
    ("昨天说了什么？", "06-09"),
    ("昨晚我吃了什么", "06-09"),
    ("前天谁来了", "06-08"),
    ("大前天谁来了", "06-07"),
    ("今天有什么安排", "06-10"),
    ("今天早上我做了什么", "06-10"),
    ("明天有什么安排", "06-11"),
    ("明天下午有什么安排", "06-11"),
    ("后天去哪里", "06-12"),
    ("後天去哪裡", "06-12"),
    ("大后天去哪里", "06-13"),
    ("上周我做了什么？", "06-01..06-07"),
    ("上個星期我做了什麼", "06-01..06-07"),
    ("上上周我做了什么？", "05-25..05-31"),
    ("本周有什么会议", "06-08..06-14"),
    ("这周有什么会议", "06-08..06-14"),
    ("下周去哪里", "06-15..06-21"),
    ("上周三我做了什么", "06-03"),
    ("上周日我做了什么", "06-07"),
    ("下周一有什么会议", "06-15"),
    ("这周五有什么会议", "06-12"),
    ("星期五有什么会议", "06-05 06-12"),
    ("上周末去哪里了", "06-06..06-07"),
    ("这个周末去哪里", "06-13..06-14"),
    ("上个月买了什么", "2026-05"),
    ("上月买了什么", "2026-05"),
    ("这个月买了什么", "2026-06"),
    ("下个月去哪里", "2026-07"),
    ("上个月5号买了什么", "05-05"),
    ("去年去了哪里", "2025"),
    ("去年六月去了哪里", "2025-06"),
    ("去年夏天去了哪里", "2025-06..2025-08"),
    ("前年去了哪里", "2024"),
    ("今年的目标是什么", "2026"),
    ("明年的计划是什么", "2027"),
    ("三天前谁来了", "06-07"),
    ("3天前谁来了", "06-07"),
    ("两周前说了什么", "05-24..05-30"),
    ("两个月前买了什么", "2026-04 03-31..04-20"),
    ("两年前在哪里工作", "2024"),
    ("几天前谁来了", "06-04..06-08"),
    ("前几天谁来了", "06-03..06-09"),
    ("三天后有什么安排", "06-13"),
    ("最近三天做了什么", "06-07..06-10"),
    ("过去两周做了什么", "05-27..06-10"),
    ("最近在看什么书", RECENT),
]  # fmt: skip

NOT_READ = [
    # titles and names
    "Who sang Yesterday?",
    "who wrote yesterday",
    'What did I say about "The Day After Tomorrow"?',
    "What did I say about the film The Day After Tomorrow?",
    "Do I read USA Today?",
    "Which guest was on the Today show?",
    "Do I watch Last Week Tonight?",
    "Do we use monday.com?",
    "Do I like Black Friday sales?",
    "Who knows the song last night?",
    "我喜欢《昨天》这首歌吗",
    "我玩明日方舟吗",
    "我看今日头条吗",
    "Sehe ich die heute-show?",
    # habits
    "What do I do every Friday?",
    "What do I do on Mondays?",
    "Where do I swim each weekend?",
    "How often do I run a week?",
    "How many times a week do I train?",
    "I run twice a week",
    "Which course is on a Tuesday?",
    "Am I free Monday to Friday?",
    "每周五我做什么",
    "每个星期三我做什么",
    "周一到周五我做什么",
    "Was mache ich jeden Freitag?",
    "Was mache ich freitags?",
    "Wie oft pro Woche laufe ich?",
    # counted from another day
    "What did I do the day after I moved?",
    "Who came the week before the wedding?",
    "What did I do two days before the exam?",
    "Is this the last week of school?",
    "When is the last week of the course?",
    "What did I do in my last year at university?",
    "How was my first week at work?",
    "Was war meine letzte Woche im Büro?",
    "Was war die letzte Woche der Ferien?",
    "前三天我做了什么",
    # idioms and other meanings
    "Guten Morgen",
    "Was esse ich am Morgen?",
    "Was mache ich jeden Morgen?",
    "Geht das von heute auf morgen?",
    "What is the world of tomorrow?",
    "Is there no tomorrow?",
    "What do I think of today's youth?",
    "What is the difference in today's world?",
    "最近的地铁站在哪里",
    "离我家最近的医院",
    "以后天天跑步",
    "后天性心脏病是什么",
    "日本月饼好吃吗",
    "登上月球的是谁",
    "一周年纪念日",
    "Which of my friends was born on Monday?",
    "Do I go to church on Sunday mornings?",
    "Ist das ein guter Morgen?",
    "Wie heißt die Sendung Heute?",
    "哪家店最近",
    "本周期的目标",
    "这周围有什么",
    "上月台的人",
    "前天津市长是谁",
    "说明天线的那本手册在哪里？",
    "楼下周师傅修什么？",
    "他目前年龄多大？",
    "星期五餐厅的招牌菜是什么？",
    "What did I rename the column 'today' to?",
    "Who wrote ‘Last week in June’?",
    "Wie heißt der Film „Morgen vielleicht“ im Original?",
    "Wer ist nicht von gestern?",
    "How often do I see Anna in a month?",
    # durations
    "What did I learn in two weeks?",
    "How did I lose 5 kg in three months?",
    # the present, and words that look like times
    "Where do I live now?",
    "What do I currently use?",
    "我现在住在哪里",
    "What may I eat?",
    "What is my second name?",
    "Did we march for peace?",
    "What is my last name?",
    "What is the next step?",
    "When was the last time I ran?",
    "Which second car do I own?",
    "What is my day job?",
    "What is my week like?",
    "How many years have I worked?",
    "What are the names of the days?",
    "Which month is my birthday in?",
    "Who won the battle long ago?",
    "Do I use Next.js?",
    "Is this a good day?",
    "我的生日是几月",
    "一周有几天",
]


def _days(tokens: tuple[str, ...]) -> set[date]:
    """Return the days of query tokens, a month being all of its days."""
    found = {date.fromisoformat(token[2:]) for token in tokens if token.startswith("d:")}
    for token in tokens:
        if token.startswith("said-m:"):
            found |= _of_month(token[7:])
    return found


def _of_month(month: str) -> set[date]:
    day, found = date.fromisoformat(f"{month}-01"), set()
    while f"{day:%Y-%m}" == month:
        found.add(day)
        day += timedelta(1)
    return found


def _days_of(written: str) -> set[date]:
    """Return the days of "06-01..06-07", "2026-05", "2025-06..2025-08" or "2025"; several parts are joined."""
    found: set[date] = set()
    for part in written.split():
        first, _, last = part.partition("..")
        ends = []
        for end in (first, last or first):
            if len(end) == 4:
                months = [f"{end}-{month:02}" for month in range(1, 13)]
            elif end.startswith("20") and len(end) == 7:
                months = [end]
            else:
                ends.append({date.fromisoformat(end if end.startswith("20") else f"2026-{end}")})
                continue
            ends.append(set().union(*map(_of_month, months)))
        low, high = min(ends[0]), max(ends[1])
        found |= {low + timedelta(number) for number in range((high - low).days + 1)}
    return found


@pytest.mark.parametrize(("query", "expected"), READ)
def test_an_expression_means_its_days(query: str, expected: str) -> None:
    assert _days(query_times(query, NOW).tokens) == _days_of(expected)


@pytest.mark.parametrize("query", NOT_READ)
def test_words_without_the_meaning_of_a_time_stay_words(query: str) -> None:
    found = query_times(query, NOW)
    assert found.tokens == ()
    assert found.rest == fold(query)


@given(st.text(max_size=100))
def test_text_without_a_time_is_folded_only(text: str) -> None:
    found = query_times(text, NOW)
    assert found.tokens or found.rest == fold(text)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Tomorrow I fly to Porto.", {"2026-06-11"}),
        ("We met yesterday and the day before yesterday.", {"2026-06-09", "2026-06-08"}),
        ("Morgen fliege ich nach Porto.", {"2026-06-11"}),
        ("我后天飞波尔图", {"2026-06-12"}),
        ("I fly on 12 July.", {"2026-07-12"}),
        ("Ich fliege am 5.7.", {"2026-07-05"}),
        ("I fly on 12 July 2028.", set()),
        ("I am here today.", set()),
        ("I run every Friday.", set()),
        ("I read a lot recently.", set()),
    ],
)
def test_a_message_means_days_counted_from_its_own(text: str, days: set[str]) -> None:
    found = message_tokens(text, NOW.date(), tokenize(text))
    assert {token[2:] for token in found if token.startswith("d:")} == days


def test_a_message_means_months_and_years_other_than_its_own() -> None:
    assert message_tokens("I moved last month.", NOW.date(), []) == ["m:2026-05", "mo:05"]
    assert message_tokens("I started this month.", NOW.date(), []) == []
    assert message_tokens("I move next year.", NOW.date(), []) == ["y:2027"]


def test_a_time_outside_of_the_calendar_is_not_read() -> None:
    assert query_times("900 years ago", NOW).tokens
    assert query_times("last year", datetime(1, 1, 1, tzinfo=UTC)).tokens == ()
    assert query_times("tomorrow", datetime(9999, 12, 31, tzinfo=UTC)).tokens == ()


@pytest.mark.parametrize(
    "piece", ["last ", "昨天", "in 3 ", "vor zwei ", "the last week ", '"', " 'a", "yesterday ", "上周", "一"]
)
def test_hostile_repetition_costs_linear_time(piece: str) -> None:
    started = time.monotonic()
    query_times(piece * (8192 // len(piece)), NOW)
    message_tokens(piece * (200_000 // len(piece)), NOW.date(), [])
    assert time.monotonic() - started < 5
