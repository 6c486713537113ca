"""Extraction rules for gateways without a language model."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engines.embedded.engine import EmbeddedEngine
from engines.embedded.extraction_rules import category
from store.models import Memory
from tests.conftest import Person
from tests.store.conftest import NOON_MS, remember, text_message
from tests.stub_llm import StubLlm

PREFERENCES = """
I prefer tea.
I like my coffee black.
I really don't like crowded places.
I can't stand loud music in the morning.
I absolutely love hiking in the rain.
I'd rather take the train than fly.
My favorite color is green.
My least favorite food is liver.
I'm a big fan of old maps.
I am not fond of long meetings.
Please call me Lena.
Please always answer in French.
Never send me voice messages.
From now on use metric units.
I never eat meat.
Well, it was a long day. I hate mornings though.
Caroline: I love painting by the lake.
我喜欢喝绿茶。
我不喜欢吃香菜
我更喜欢靠窗的座位。
我最讨厌开会迟到的人。
我习惯早上跑步。
我从来不吃辣。
我宁愿坐火车也不坐飞机。
我爱吃饺子。
我对甜食没兴趣,我偏好咸的。
请叫我小林。
以后请用中文回答我。
请始终用表格列出结果。
我的爱好是摄影。
""".strip().splitlines()

DECISIONS = """
We decided to move to the new office in May.
We've decided on the blue design.
I have finally decided to quit smoking.
We agreed to meet every Tuesday.
We agreed that the contract ends in June.
I made up my mind: I'm taking the job.
We settled on the cheaper plan.
We'll go with PostgreSQL.
We are going with the second offer.
Let's go with option B.
The final decision is to postpone the launch.
Decision: the budget stays as it is.
It's settled.
I chose the flat near the park.
我决定下个月辞职。
我们决定五月搬家。
我们已经决定采用第二个方案。
我们最终选择了蓝色的设计。
我们商定每周二开会。
我们说好周六去爬山。
就这么定了。
就这样决定了!
大家一致同意推迟发布。
会议决定明年再扩招。
我终于下定决心戒烟了。
决定:预算保持不变。
""".strip().splitlines()

FACTS = """
My name is Jonas.
My birthday is on the 3rd of April.
I live in Bergen.
I was born in Lyon.
I work as a nurse.
I work for a small bakery.
I'm a teacher.
I am an electrical engineer.
I am allergic to peanuts.
I'm from Portugal.
I'm married.
I have two kids.
I have a dog.
My wife works at the hospital.
My son is seven.
I speak Spanish and a little Danish.
I grew up on a farm.
I've been living in Ghent for years.
我叫李雷。
我住在杭州。
我现在在一家银行工作。
我是一名护士。
我是软件工程师。
我今年35岁。
我有两个孩子。
我养了一只猫。
我的生日是四月三日。
我老婆在医院上班。
我女儿叫小雨。
我对花生过敏。
我毕业于浙江大学。
我来自四川。
""".strip().splitlines()

OTHER_SENTENCES_OF_USERS = """
Do you like tea?
What do you prefer, tea or coffee?
I'd like to know the time.
I would like a summary of this.
If I like it, I will keep it.
It looks like rain.
They say that people prefer tea.
Never mind.
You prefer tea.
I haven't decided yet.
We have not decided where to go.
I can't decide between the two.
Help me decide, please.
Have we decided?
You decide.
If we decided to go, we would need a car.
I'm sorry.
I am going to the shop.
I'm not sure about that.
I have a question.
I have to leave now.
I'm a bit tired.
Where do I live?
Thanks, that is great!
Can you translate this text?
The weather is nice today.
Read the attached contract.
你喜欢喝茶吗?
你觉得我喜欢什么?
如果我喜欢,我就买。
我还没决定。
我们还没有决定去哪里。
由你决定吧。
帮我决定一下。
我无法决定。
这取决于天气。
我有点累。
我有个问题。
我是说明天。
我在想这个问题。
我住在哪里?
今天天气很好。
谢谢你的帮助!
请问现在几点?
帮我翻译这段话。
他喜欢喝咖啡。
""".strip().splitlines()

LESSONS = """
Lesson learned: check the time zone first.
I learned that the API needs a trailing slash.
Next time I will ask before deleting anything.
Best practice: run the tests before pushing.
The trick is to warm the cache first.
It works better when the file is split.
Turns out the server wants UTF-8.
Note to self: the export takes an hour.
Always make a backup before migrating.
经验:先备份再迁移。
教训是不要在周五发布。
下次我会先确认时区。
以后遇到这种情况要先查日志。
我学到了要先加锁。
原来需要先登录才能导出。
记住,每次都要先运行测试。
关键在于先清空缓存。
""".strip().splitlines()

ERRORS = """
I made a mistake in the second table.
That was my mistake.
I was wrong about the date.
I misread the invoice.
The command failed with exit code 2.
The build failed.
The request timed out.
It failed because the disk was full.
ValueError: invalid literal for int()
I apologize for the confusion.
The server returned an error.
我刚才算错了金额。
我理解错了你的意思。
这是我的失误。
命令执行失败,磁盘已满。
脚本报错了。
接口调用超时。
抱歉,刚才给的链接是旧的。
我忘了附上文件。
""".strip().splitlines()

FEATURE_REQUESTS = """
Feature request: export to CSV.
It would be useful to have a dark mode.
It would be helpful if I could read calendars.
The user asked for a weekly summary.
Users want to have an offline mode.
I wish I could open attachments.
I need a tool for sending faxes.
建议增加导出功能。
希望支持语音输入。
用户希望我每天早上发摘要。
功能请求:批量删除。
我没有读取日历的权限。
缺少发送短信的工具。
""".strip().splitlines()

OTHER_SENTENCES_OF_AGENTS = """
Here is the summary you asked for.
The tests ran without errors.
All checks passed, 0 failed.
If the command fails, run it again.
What went wrong?
I hope this helps!
Error handling is described in chapter 3.
The lesson starts at nine.
Is this a best practice?
You prefer tea, I see.
I decided to help you.
See you next time.
Sorry, I can't open that page.
这是您要的摘要。
测试全部通过,没有报错。
如果失败,请重试。
希望对你有帮助!
下次再见。
还有其他需要吗?
抱歉,我不能打开这个页面。
一切正常。
""".strip().splitlines()

TABLE = [
    *[("user", text, "user_memory_preference") for text in PREFERENCES],
    *[("user", text, "user_memory_decision") for text in DECISIONS],
    *[("user", text, "user_memory_fact") for text in FACTS],
    *[("user", text, "") for text in OTHER_SENTENCES_OF_USERS],
    *[("assistant", text, "self_improving_learnings") for text in LESSONS],
    *[("assistant", text, "self_improving_errors") for text in ERRORS],
    *[("assistant", text, "self_improving_feature_requests") for text in FEATURE_REQUESTS],
    *[("assistant", text, "") for text in OTHER_SENTENCES_OF_AGENTS],
]


def test_the_table_has_two_hundred_sentences_in_two_languages() -> None:
    texts = {text for _, text, _ in TABLE}
    assert len(texts) == len(TABLE) >= 200
    assert min(sum(text.isascii() for text in texts), sum(not text.isascii() for text in texts)) >= 80


@pytest.mark.parametrize(("role", "text", "expected"), TABLE)
def test_the_category_of_a_sentence(role: str, text: str, expected: str) -> None:
    assert category(role, text) == expected


@pytest.mark.parametrize("role", ["user", "tool"])
def test_only_agents_have_self_improving_categories(role: str) -> None:
    assert not category(role, "The command failed with exit code 2.")


def test_only_users_have_preferences() -> None:
    assert not category("assistant", "I prefer tea.")
    assert not category("tool", "I prefer tea.")


def test_full_width_and_typographic_forms_are_equivalent() -> None:
    assert category("user", "I can\u2019t stand loud music") == category("user", "我不喜欢吃香菜!") == PREFERENCE
    assert category("user", "ｉ ｐｒｅｆｅｒ ｔｅａ") == PREFERENCE


def test_a_long_text_has_no_category() -> None:
    assert not category("user", "I prefer tea. " + "And so on. " * 100)


@pytest.mark.parametrize("text", ["i " * 299, "i really " * 66, "my my " * 99, "我" * 600, "我的 " * 200, "." * 600,
                                  "error: " * 85, "the user " * 66, "not " * 150, "always a " * 66])  # fmt: skip
def test_hostile_texts_are_classified_quickly(text: str) -> None:
    began = time.process_time()
    for role in ("user", "assistant"):
        category(role, text)
    assert time.process_time() - began < 0.1


PREFERENCE = "user_memory_preference"


def test_messages_are_stored_with_their_category(engine: EmbeddedEngine, alice: Person, settings: Any) -> None:
    remember(engine, alice.owner, "I prefer tea.", "What about you?")
    turns = [text_message("Lesson learned: ask first.", by="main", role="assistant", at=NOON_MS + 7)]
    engine.add(alice.owner, "chat:c2", turns)
    settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY = False
    engine.add(alice.owner, "chat:c3", turns)
    categories = Memory.objects.order_by("pk").values_list("category", flat=True)
    assert list(categories) == [
        PREFERENCE, "full_context_user", "self_improving_learnings", "full_context_assistant",
    ]  # fmt: skip


def test_with_a_model_messages_get_the_category_of_their_role(
    engine: EmbeddedEngine, alice: Person, llm: StubLlm
) -> None:
    remember(engine, alice.owner, "I prefer tea.")
    assert Memory.objects.get().category == "full_context_user"
