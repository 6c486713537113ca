"""Words that are searched beside those of a query, so that a search without a model finds what was said in other words.

The tables hold everyday words. `store.search.ranking` gives them a fraction of the weight of the query's own.
"""

from collections.abc import Collection
from functools import cache
from itertools import chain
from typing import Final

from store.text.tokens import query_tokens

_ALIKE: Final = """
child kid children son daughter boy girl toddler|mother mom mum mama parent|father dad papa parent|grandmother grandma
granny|grandfather grandpa granddad|brother sister sibling|husband wife spouse partner|boyfriend girlfriend partner|
wedding marriage married marry engaged|divorce divorced breakup separated|baby newborn pregnant pregnancy birth|
family relative|friend buddy pal mate|colleague coworker|boss manager supervisor|
job work career occupation profession employer|salary wage pay income|promotion promoted|fired dismissed quit resign|
hire employ recruit|company business firm startup enterprise|shop store boutique|customer client buyer|
meeting appointment|deadline due|invoice bill payment|contract agreement|school college university class course|
teacher professor instructor tutor|student pupil|degree diploma graduate graduation|study learn education educate|
exam test quiz|house home apartment flat|move relocate relocation|rent lease landlord|city town|
country nation homeland|trip travel vacation holiday journey visit|car vehicle truck automobile|bicycle bike cycling|
airplane flight plane airport|train railway station|hotel accommodation hostel|beach ocean sea coast|
mountain hill peak|hike trek trail|forest woods nature outdoors|camp tent campfire|movie film cinema|show series tv|
book novel read author|song music album tune|band singer musician|concert gig performance|paint art drawing|
photo picture photograph image|pottery clay ceramics|game gaming|sport exercise workout fitness gym training|
run jog marathon race|swim pool|yoga meditation|dance dancer|hobby pastime interest activity|relax unwind stress calm|
dog puppy pup|cat kitten|food meal dish dinner lunch breakfast|cook bake recipe|dessert cake pie|
drink beverage coffee tea|restaurant cafe diner|allergy allergic intolerant|vegetarian vegan|
doctor physician hospital clinic|dentist tooth|ill sick disease illness|injury hurt accident wound|
medicine medication drug pill|therapy therapist counseling counselor|weight diet|money cash finance financial|
buy purchase bought|cost price expensive|gift present|birthday anniversary|party celebration celebrate|
event festival fair|volunteer charity shelter donate|fundraiser donation charity|church faith religion religious|
politics political election campaign vote|military army veteran soldier|law legal lawyer court|
award prize trophy medal win|competition contest tournament|goal dream plan aim|hope wish want|like love enjoy fond|
hate dislike|happy glad excited thrilled|sad upset unhappy|afraid scared fear nervous|angry mad|tired exhausted|
difficult hard tough challenge struggle|help support assist|advice suggestion recommend tip|start begin launch open|
finish end complete|create make build|fix repair|phone mobile|computer laptop|website site online|
app software program|password login|garden plant flower|clothes clothing outfit dress fashion|shoes sneakers boots|
furniture couch chair|necklace jewelry ring|flood storm hurricane|fire burn|
妈妈 母亲|爸爸 父亲|奶奶 祖母|爷爷 祖父|外婆 姥姥|外公 姥爷|妻子 太太 老婆|丈夫 先生 老公|孩子 儿子 女儿 小孩|医生 大夫|
医院 诊所|生病 患病|电影 影片|手机 电话|电脑 计算|汽车 轿车|自行 单车|飞机 航班|旅行 旅游 出游|工作 职业 上班|公司 企业|
老板 上司|同事 同僚|工资 薪水|学校 大学|老师 教师|学生 同学|考试 测验|房子 住宅 公寓|餐厅 饭店|吃饭 用餐|喜欢 喜爱|
讨厌 厌恶|高兴 开心|难过 伤心|害怕 恐惧|买了 购买|价格 价钱|礼物 礼品|比赛 竞赛|小狗 狗狗|小猫 猫咪
"""
_KINDS: Final = """
instrument: guitar piano violin clarinet drums flute cello saxophone trumpet ukulele keyboard
sport: soccer football basketball tennis baseball golf hockey volleyball swimming running cycling skiing surfing
martial: karate judo taekwondo kickboxing boxing aikido
pet: dog cat rabbit hamster parrot fish turtle puppy kitten
animal: dog cat horse bird rabbit turtle bear
fruit: apple banana orange grape strawberry mango peach
vegetable: tomato potato carrot onion cabbage spinach
color: red blue green yellow purple pink black white orange
season: spring summer autumn fall winter
language: english french spanish german chinese japanese italian
hobby: painting reading hiking swimming dancing cooking gardening running pottery photography
activity: painting hiking swimming camping dancing running yoga pottery reading
outdoor: hiking camping fishing climbing park picnic
vehicle: car truck bus motorcycle van
drink: coffee tea wine beer juice water
dessert: cake pie cookie brownie sundae
weather: rain snow sun wind
genre: fantasy romance thriller mystery
乐器: 钢琴 吉他 二胡 古筝 笛子
运动: 跑步 游泳 篮球 足球 网球
宠物: 小狗 小猫 兔子 仓鼠
水果: 苹果 香蕉 葡萄 草莓 橙子
季节: 春天 夏天 秋天 冬天
颜色: 红色 蓝色 绿色 黄色 白色 黑色
"""


def related_tokens(tokens: Collection[str]) -> list[str]:
    """Return the tokens of words related to those of a query: "violin" for "instrument", "kid" for "child"."""
    found = chain.from_iterable(_table().get(token, ()) for token in tokens)
    return [token for token in dict.fromkeys(found) if token not in tokens]


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """Return the related tokens of each token that has some."""
    found: dict[str, dict[str, None]] = {}
    for line in _ALIKE.replace("\n", " ").split("|"):
        group = query_tokens(line)
        for token in group:
            found.setdefault(token, {}).update(dict.fromkeys(group))
    for line in _KINDS.strip().splitlines():
        kind, _, members = line.partition(":")
        [token] = query_tokens(kind)
        found.setdefault(token, {}).update(dict.fromkeys(query_tokens(members)))
    return {token: tuple(others) for token, others in found.items()}
