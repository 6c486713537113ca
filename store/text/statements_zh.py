"""Statements and questions in Chinese."""

import re
from collections.abc import Iterator
from typing import Final

from core.patterns import lazy_pattern
from store.text.slot_words import RELATIONS
from store.text.slots import (
    GROUP,
    LEAVES,
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

_DOUBT: Final = lazy_pattern(
    r"如果|要是|假如|假设|万一|的话|除非|想要?(?!法)|打算|计划(?!是|在|改|定)|准备(?!好)|考虑|希望|可能|也许"
    r"|或许|大概要|差点|几乎|本来|曾经?(?!国)|以前|之前|过去|小时候"
    r"|那时候?|当时|当年|原来"
    r"|以为|据说|听说|说他|说她|说我|说过|比如|例如|愿望|梦见|梦想|假装|扮演|开玩笑|好像|似乎|会不会|要不要"
    r"|是不是|能不能|该不该|应该|即将|将要|下个?月(?:要|会)|明年|就要|快要|不会"
    r"|绝不|永远不|别人"
    r"|年前|时候|犹豫|商量|建议|推荐|万一|倘若|谣言|小说|电影里|故事里|引用|翻译"
)
_FICTION: Final = lazy_pattern(
    r"开玩笑|角色扮演|假装|假设|小说|剧本|翻译|哈哈|歌词|造句|写一[篇首段个]|扮演|台词|润色|改写"
)
_LEAD: Final = lazy_pattern(
    r"^(?:(?:嗨|你好|对了|顺便说一下|顺便|其实|更新一下|更新|请记住|记住|记一下|提醒一下|通知|补充一下|纠正一下"
    r"|更正|最近|上个?月|上周|上星期|昨天|今天|这周|这个月|今年|去年|现在"
    r"(?!的)|目前(?!的)|从今天起|从今天开始"
    r"|从明天起|从下周起|从下周开始|从下个月起|从现在起|从本周起|已经|后来|终于|刚刚|刚|好消息|不过|但是|另外"
    r"|还有|那个|因为[^，,]*|由于[^，,]*|前几天|前天|几天前|两周前"
    r"|告诉你)[，,：:！!\s]*)+"
)
_CHANGE_WORDS: Final = lazy_pattern(
    r"现在|目前|从今|从明天|从下|从本|改|换|搬|新|更新|最近|如今|已经|不再|变成|变为|刚|已|跳槽|调到|转到|涨|降"
    r"|推迟|提前|更正|后来|了$"
)
_ADVERBS: Final = lazy_pattern(
    r"^(?:(?:现在|目前|已经|最近|刚刚|刚|如今|也|都|又|还是|还|后来|终于|上个?月|上周|昨天|今天|今年|去年|一直"
    r"|平时|每天|正式|从\w{1,4}[起始])+)"
)
_SUBJECT: Final = lazy_pattern(
    r"^(?P<me>我(?!们|的|家|妈|爸|哥|姐|弟|妹|儿|女|老|男|爷|奶|朋|同|表|堂|公|太|丈|妻|舅|叔|姑|姨|孩|侄|外)"
    r"|用户(?!的))"
    r"|^(?P<us>我们团队|我们(?!的)|咱们(?!的)|团队)"
    r"|^(?P<other>(?:我的?|我家)?(?:[一-鿿]{0,2}(?:妈妈?|爸爸?|哥哥?|姐姐?|弟弟?|妹妹?|儿子|女儿|老婆|老公|男友|女友|男朋友|女朋友|爷爷|奶奶|外公|外婆|朋友|同事|表哥|表姐|表弟|表妹|堂哥|孩子|侄子|侄女|妻子|丈夫|舅舅|叔叔|姑姑|阿姨|室友|邻居|同学|老板)|小[一-鿿]|老[王李张刘陈]|[王李张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗郑梁谢宋唐许邓冯韩曹曾彭萧蔡潘田董袁于余叶蒋杜苏魏程吕丁沈任姚卢傅钟姜崔谭廖范汪陆金石戴贾韦夏邱方侯邹熊孟秦白江阎薛尹段雷黎史龙陶贺顾毛郝龚邵万钱严武戴莫孔向汤][一-鿿]{1,2}(?=(?:现在|已经|最近)*(?:住|搬|在|是|开|用|\d))))"
)
_VERBS: Final = compiled(
        ((
            r"(?:从(?P<old>[^搬]{1,12}?))?搬(?:家)?(?:到|去|回|进|来)(?:了)?(?P<new>.{1,30}?)(?:住|居住|生活)?了?$"
        ), "home", "change"),
        (r"(?:从(?P<old>.{1,12}?))?(?:移居|定居|迁居)(?:到|在|去)?了?(?P<new>.{1,30}?)了?$", "home", "change"),
        (r"(?:居)?住(?:在|到)?了?(?P<new>[^着过院进]{1,30}?)(?<![天晚])了?$", "home", ""),
        (r"(?:不住|不再住|不住在)(?:在)?(?P<gone>.{1,30}?)了?$", "home", "negation"),
        ((
            (
                r"(?:从(?P<old>.{1,15}?))?(?:离职|辞职)?(?:，|,)?(?:跳槽|跳|转|调)(?:到|去|至)了?(?P<new>.{1,30}?)("
                r"?:工作|上班|当.+)?了?$"
            )
        ), "employer", "change"),
        (r"(?:入职|加入|加盟)(?:到)?了?(?P<new>.{1,30}?)(?:公司)?了?$", "employer", "change"),
        ((
            r"(?:换(?:了)?工作|换(?:了)?(?:一)?(?:份|个)(?:新)?工作)(?:了)?[，,]?(?:现在|目前)?(?:在|去|到|去了)"
                r"(?P<new>.{1,30}?)(?:工作|上班"
            r"|任职)?了?$"
        ), "employer", "change"),
        (r"(?:不在|不再在)(?P<gone>.{1,30}?)(?:工作|上班|任职)(?:了)?$", "employer", "negation"),
        (r"(?:离开|辞去)了?(?P<gone>.{1,20}?)(?:的工作|的职位)?[了，,]?.*$", LEAVES, "negation"),
        (r"(?:从(?P<gone>.{1,15}?))?(?:离职|辞职|被裁|被裁员|失业)了?$", "employer", "negation"),
        (r"在(?P<new>(?!家(?:里)?[工上任就]).{1,30}?)(?:工作|上班|任职|就职)了?$", "employer", ""),
        (r"在(?P<new>.{1,30}?)(?:读书|上学|念书|读研|读大学|读博)了?$", "school", ""),
        (r"退休了?$", "job", "change"),
        ((
            (
                r"(?:改行|转行|转岗)?(?:当|做)(?:了|上了?)?(?P<role>[^，,]{1,12}(?:师|员|生|工|手|家|理|者|人|长|官"
                r"|医生|护士|司机|厨师))了?$"
            )
        ), "job", "change"),
        ((
            r"是(?:一名|一个|一位|个|名|位)?(?P<role>[^，,]{0,10}(?:工程师|程序员|老师|教师|医生|护士|律师|厨师"
                r"|设计师|经理|会计|司机|学生|记者|作家|演员|警察|研究员|教授"
            r"|产品经理|销售|顾问|分析师|总监|主管))了?$"
        ), "job", ""),
        (r"(?:升职|晋升|升)(?:为|成|到|当)了?(?P<role>.{1,12}?)了?$", "job", "change"),
        (r"(?:今年)?(?:已经)?(?:满)?(?P<new>\d{1,3}|[一二三四五六七八九十]{1,3})岁(?:半)?了?$", "age", ""),
        (r"(?:身高|高)(?:是)?(?P<new>[\d.]+(?:厘米|公分|米|cm).*)$", "height", ""),
        (r"(?:体重|重)(?:是)?(?P<new>[\d.]+(?:公斤|斤|千克|kg).*)$", "weight", ""),
        ((
            r"(?:把|将)(?P<old>.{1,15}?)卖(?:了|掉了?)[，,]?(?:又)?(?:买|换|入手)(?:了|成了?|上了?)?(?:一?(?:辆"
                r"|台|部))?(?:新的?)?"
            r"(?P<new>.{1,20}?)了?$"
        ), "car", "change"),
        ((
            r"(?:卖了|卖掉了?)(?P<old>.{1,15}?)[，,]?(?:又|改|并)?(?:买|换|开)(?:了|成了?|上了?)?(?:一?(?:辆|台"
                r"|部))?(?:新的?)?"
            r"(?P<new>.{1,20}?)了?$"
        ), "car", "change"),
        ((
            (
                r"(?:换|买)(?:了)?(?:一?(?:辆|台|部))?新?车了?[，,：:]?(?:是|买的是|一?辆)?(?:一?(?:辆|台|部))?("
                r"?P<new>.{1,20}?)了?$"
            )
        ), "car", "change"),
        (r"(?:改)?开(?:的是|着)?(?:一?(?:辆|台|部))(?P<new>.{1,20}?)(?:上班)?了?$", "car", ""),
        ((
            r"(?:换)?开(?:的是|着|上了?)?(?P<new>特斯拉|宝马|奔驰|奥迪|大众|丰田|本田|比亚迪|蔚来|小鹏|理想"
                r"|沃尔沃|福特|日产|马自达|保时捷|别克|吉利|红旗|五菱|现代|起亚|雷克萨斯"
            r"|领克|问界|小米SU7.*|[A-Z]\w+.*?)了?$"
        ), "car", ""),
        (r"(?:不再|不)吃(?P<new>肉|荤|鱼|海鲜|奶制品|鸡蛋)了$", "diet", "change"),
        (r"(?:不再是|不是)(?P<gone>素食者|素食主义者|纯素食者|严格素食者)了$", "diet", "negation"),
        (r"(?:不再|不)吃素了$", "diet", "change"),
        (r"(?:开始|改)(?:重新)?吃(?P<new>素|肉|荤)了?$", "diet", "change"),
        ((
            r"(?:是|成了|变成了?|成为了?)(?:一个|一名)?(?P<new>素食者|素食主义者|纯素食者|严格素食者|纯素主义者)了?$"
        ), "diet", ""),
        (r"(?:吃)(?P<new>素)(?:的)?$", "diet", ""),
        (r"(?:和|跟|与)(?P<new>[^，,]{1,10}?)(?:结婚|订婚|在一起|谈恋爱|交往)了?$", "partner", "change"),
        (r"(?:和|跟|与)(?P<gone>[^，,]{1,10}?)(?:离婚|分手)了?$", "partner", "negation"),
        (r"(?:已经|刚)?(?P<new>结婚|离婚|单身|订婚)(?:了)?$", "marital status", "change"),
        ((
            (
                r"(?:从|由)(?P<old>.{1,20}?)(?:换|迁移|切换|转|改用|换用|改|升级|迁)(?:到|成|为|至|用|向)?了?(?:使用"
                r"|用)?(?P<new>.{1,25}?)了?$"
            )
        ), USES, "change"),
        ((
            r"(?:把|将)(?P<noun>.{1,15}?)(?:从(?P<old>.{1,20}?))?(?:换|改|切换|迁移|调整|升级|调|定|推迟|提前"
                r"|更新|更改|更换|设置?|挪|移|迁)(?:到|成"
            r"|为|至|在)了?(?P<new>.{1,30}?)了?$"
        ), "", "change"),
        (r"用(?P<new>.{1,20}?)(?:替换|取代|代替|替代|换掉)了?(?P<old>.{1,20}?)了?$", USES, "change"),
        (r"(?:不再|不)(?:使用|用)(?P<gone>.{1,20}?)了$", USES, "negation"),
        (r"(?:停用|弃用|卸载)了?(?P<gone>.{1,20}?)了?$", USES, "negation"),
        ((
            r"(?:改|换)(?:用|成|到)(?:了)?(?P<new>.{1,25}?)(?P<what>写代码|记笔记|做笔记|编程|开发|办公|聊天|上网)"
            r"?了?$"
        ), USES, "change"),
        ((
            r"(?:使用|用|在用|用的是)(?P<new>[A-Za-z微钉飞企印有语阿腾华石][^，,的]{0,20}?)(?P<what>写代码"
                r"|记笔记|做笔记|编程|开发|办公|聊天|上网|作为.+|做.+"
            r"|存.+)?$"
        ), USES, ""),
        ((
            (
                r"换了?(?:一?(?:个|份|家|位))?(?P<noun>新?的?.{1,10}?)了?[，,：:](?:现在)?(?:是|叫|为|改成|换成)?("
                r"?P<new>.{1,30}?)了?$"
            )
        ), "", "change"),
        ((
            r"换了?(?:一?(?:个|份|家|位))?(?P<noun>新?的?(?:老板|上司|医生|手机号|电话|邮箱|房东|健身房|银行"
                r"|保险).{0,4}?)(?:是|叫|为)"
            r"(?P<new>.{1,30}?)了?$"
        ), "", "change"),
        (r"换(?:成|上)?了?(?:一?[台部个])?(?P<new>[A-Za-z].{0,25}?)了?$", USES, "change"),
        (r"(?:瘦|胖|减|涨)到了?(?P<new>[\d.]+(?:公斤|斤|kg).*?)了?$", "weight", "change"),
        (r"(?:上|在上|转学到|转到)(?P<new>[^，,]{1,12}(?:小学|中学|大学|幼儿园|高中|初中))(?:上学)?了?$", "school", ""),
        (r"(?:改名|改)?叫(?P<new>[^，,]{1,10}?)了?$", "name", ""),
        ((
            r"(?:每天|每晚|平时)?(?:早上|晚上|上午)?(?P<new>\S{1,6}点\S{0,3}?)(?:就)?(?P<what>起床|睡觉|上班|下班"
            r"|吃饭)了?$"
        ), "routine", ""),
        ((
            r"(?:每天)?(?:坐|乘|骑|开|搭)(?P<new>地铁|公交|公交车|自行车|车|电动车|火车|班车)(?:去)?(?:上班|通勤)了"
            r"?$"
        ), "commute", ""),
)  # fmt: skip
_NOUN: Final = lazy_pattern(
    r"^(?P<noun>(?:我们?的?|用户的|咱们的?)?(?:新的?)?[^，,。是叫为在改换变定推提涨降升到从]{1,16}?)"
    r"(?P<adv>(?:现在|目前|已经|已|最近|如今|今年|从\w{1,4}[起始](?=改|换|变|是)|又|也|都|被|正式|刚)*)"
    r"(?:从(?P<old>[^，,]{1,15}?))?"
    r"(?:(?P<changed>改期|改|换|变更|变|更改|更换|切|延期|顺延|更新|调整|调|推迟|延期|延后|提前|涨|上涨|降|下降"
    r"|下调|上调|升级|升|减少|增加|增|减|迁移|迁|切换|搬|挪|移"
    r"|定)(?:到|成|为|至|在|回|用)(?:了)?(?P<to>[^，,。]{1,40}?)了?"
    r"|(?P<not>不再是|不是|不叫)(?P<gone>[^，,。]{1,30}?)了"
    r"|(?P<be>部署在|运行在|托管在|定在|是|叫做?|为|在|定于|:|：|用的?是?|有|要)(?P<value>[^，,。]{1,40}?)("
    r"?P<end>了?))$"
)
_PROJECT_TEXT = "项目 系统 网站 应用 后端 前端 团队"
_PROJECT: Final = frozenset(_PROJECT_TEXT.split())
_BAD_NOUN: Final = lazy_pattern(
    r"^(?:我|你|他|她|它|他们|她们|你们|这|那|这个|那个|谁|什么|今天|明天|昨天|现在|大家|人|有人|我们|用户|不|也"
    r"|都|很|真|还|就|但|因为|所以|虽然|如果|其实|可能|应该)$"
    r"|[你他她谁]|什么|怎么|哪|昨天|觉得|(?<!最)喜欢|认为|知道|说|看|想|去了|吃|上次|第一|最(?!大|小|低|高|喜"
    r"|爱)|不|没|老的|旧的|前任|每次|很|真"
)
_OLD: Final = lazy_pattern(r"(?:旧|老(?!板|师|婆|公|家)|以前|之前|原来|原先|最初|过去|前任|前)的?")
_BAD_VALUE: Final = lazy_pattern(
    r"^(?:个|很|真|太|非常|最|好|不|没|一个(?:很|好|大)|我|你|他|她|为了|因为|什么|怎么|哪|谁|这|那|对的|错的|可以"
    r"|要|一样|一种|一件)|吗$|呢$|吧$|哪里|什么|几点|多少|谁|的$"
)
_HARD: Final = lazy_pattern(r"\d|[一二两三四五六七八九十]+[点月日号岁元块]|周[一二三四五六日天末]|星期|礼拜")
_HOUSEHOLD: Final = frozenset(
    {"boss", "partner", "phone", "email", "salary", "rent", "landlord", "wifi password", "gate code"}
)
_PRONOUN: Final = lazy_pattern(
    r"^(?P<me>我家?的|我(?=(?:老板|上司|女朋友|男朋友|对象|老婆|老公|邮箱|手机号?|电话|微信号|生日|房东|工资"
    r"|女儿|儿子|爸|妈|妹|姐|哥|弟|车|密码|身高|体重|名字|医生|狗|猫))"
    r"|用户的)(?!们)|^(?P<us>我们的?|咱们的?|团队的?)"
)


def is_doubtful(sentence: str) -> bool:
    """Return True if a sentence plans, wishes, supposes or tells of the past."""
    return _DOUBT.search(sentence) is not None


def is_fiction(text: str) -> bool:
    """Return True if a text jokes, plays a role or speaks about texts."""
    return _FICTION.search(text) is not None


def statements(sentence: str) -> Iterator[Statement]:
    """Yield what one sentence says of slots."""
    clause = sentence.strip(" ，,。！!").replace("现在的", "目前的")
    found = list(_of_clause(clause, ""))
    if found or not re.search("[，,]", clause):
        yield from found
        return
    subject, noun = "", ""
    for part in re.split("[，,]", clause):
        if noun and (match := _FOLLOWED.match(part.strip())) and (slot := noun_slot(noun, None)):
            yield Statement(*slot, _clean(match["new"]), "change")
            return
        if match := _CHANGED_NOUN.match(part.strip()):
            noun = match["noun"] or match["other"]
        for statement in _of_clause(part.strip(), subject):
            subject = statement.subject
            yield statement


_CHANGED_NOUN: Final = lazy_pattern(
    r"^(?P<noun>[^，,是]{2,14}?)(?:已经|已|被)?(?:换|改|变|更新|重置|更改|升级)了?$|^(?:我|我们)?(?:换|改|更新"
    r"|重置)了?(?P<other>[^，,是]{1,10}?)了?$"
)
_FOLLOWED: Final = lazy_pattern(
    r"^(?:(?:现在|新的|目前|如今|新号码)(?:是|叫|为|用)|(?:改成|换成|是))(?P<new>[^，,的是叫]{1,30}?)了?$"
)


def _of_clause(clause: str, previous: str) -> Iterator[Statement]:
    signal: Signal = ""
    if match := _LEAD.match(clause):
        clause = clause[match.end() :]
        signal = "change" if _CHANGE_WORDS.search(match[0]) else ""
    if match := _SUBJECT.match(clause):
        subject = SPEAKER if match["me"] else GROUP if match["us"] else _name_of(match["other"])
        rest = clause[match.end() :]
        if found := _of_verb(subject, rest, signal):
            yield found
            return
    elif previous and (found := _of_verb(previous, clause, signal)):
        yield found
        return
    if found := _of_noun(clause, signal):
        yield found


def _name_of(words: str) -> str:
    return re.sub(r"^我(?:家的?|的)?", "", words)


def _of_verb(subject: str, rest: str, signal: Signal) -> Statement | None:
    if match := _ADVERBS.match(rest):
        rest = rest[match.end() :]
        if _CHANGE_WORDS.search(match[0]):
            signal = "change"
    rest = rest.lstrip("，, ")
    for pattern, relation, own in _VERBS:
        if match := pattern.match(rest):
            return _from_match(match.groupdict(), subject, relation, own or signal, rest)
    return None


def _from_match(
    groups: dict[str, str | None], subject: str, relation: str, signal: Signal, rest: str
) -> Statement | None:
    old, new = _clean(groups.get("old")), _clean(groups.get("new"))
    if signal == "negation":
        gone = _clean(groups.get("gone"))
        relation = relation_of_tool(gone) if relation == USES else relation
        return Statement(relation, owner_of(subject, relation), gone, "negation")
    if noun := groups.get("noun"):
        slot = noun_slot(noun, subject)
        return Statement(*slot, new, "change", old) if slot and new else None
    if relation == "diet" and not new:
        return Statement("diet", subject, "吃肉", "change", "素")
    slot = _slot_of(groups, subject, relation, new, old)
    value = groups.get("role") or ("退休" if relation == "job" else new)
    if not value or _BAD_VALUE.search(value):
        return None
    return Statement(*slot, value, signal or ("change" if rest.endswith("了") else ""), old)


def _slot_of(groups: dict[str, str | None], subject: str, relation: str, value: str, old: str) -> Slot:
    what = groups.get("what") or ""
    if relation == "name" and subject in RELATIONS:  # 我女朋友叫小美
        return Slot(RELATIONS[subject], SPEAKER)
    if relation == "routine":
        return Slot(what or relation, subject)
    if relation == USES:
        relation = relation_of_use(value, old, what)
    return Slot(relation, owner_of(subject, relation))


def _clean(value: str | None) -> str:
    value = re.sub(r"^(?:现在|目前|是|在|到|了)", "", (value or "").strip(" “”\"'「」：:"))
    return value.removesuffix("了").strip(" “”\"'「」")


def _of_noun(clause: str, signal: Signal) -> Statement | None:
    match = _NOUN.match(clause)
    slot = noun_slot(match["noun"], None) if match and _names_thing(_bare(match["noun"])) else None
    if match is None or slot is None:
        return None
    if match["not"]:
        return Statement(*slot, _clean(match["gone"]), "negation")
    if match["changed"]:
        kind = relation_of_tool(match["to"])
        if kind != USES and slot.relation.startswith(tuple(_PROJECT)):
            slot = Slot(kind, GROUP)
        return Statement(*slot, _clean(match["to"]), "change", _clean(match["old"]))
    return _of_copula(match, slot, signal)


def _names_thing(noun: str) -> bool:
    return not (_BAD_NOUN.search(noun) or _OLD.match(noun))


def _of_copula(match: re.Match[str], slot: Slot, signal: Signal) -> Statement | None:
    value, verb = _clean(match["value"]), match["be"]
    if not value or _BAD_VALUE.search(value) or verb in {"有", "要"}:
        return None
    if "新" in match["noun"] or _CHANGE_WORDS.search(match["adv"]) or match["end"]:
        signal = "change"
    if verb.startswith("用"):
        kind = relation_of_tool(value)
        owner = GROUP if slot.relation in _PROJECT else slot.relation
        return Statement(kind, owner, value, signal) if kind != USES else None
    is_known = slot.relation in RELATIONS.values() or is_single(slot.relation) or verb in _PLACED
    if not (is_known or signal or _PRONOUN.match(match["noun"]) or _HARD.search(value)):
        return None
    return Statement(*slot, value, signal)


_PLACED: Final = frozenset({"部署在", "运行在", "托管在", "定在"})


def _bare(noun: str) -> str:
    return re.sub(r"^(?:我们的?|我的?|用户的|咱们的?|团队的?)", "", noun)


def noun_slot(noun: str, subject: str | None) -> Slot | None:
    """Return the slot that a noun phrase names; `subject` is that of a phrase without an owner."""
    noun = noun.strip(" 的")
    is_ours = subject == GROUP or noun.startswith(("我们", "咱们"))
    if match := _PRONOUN.match(noun):
        subject, noun = SPEAKER if match["me"] else GROUP, noun[match.end() :]
        if match["me"] and (kin := re.match(_KIN, noun)) and noun != kin[0]:
            subject, noun = kin[0], noun[kin.end() :].removeprefix("的")
    noun = _ADJECTIVE.sub("", noun)
    owner, _, thing = noun.rpartition("的")
    if owner and owner not in {"最喜欢", "最爱"}:
        subject, noun = (subject, owner) if thing in {"名字", "姓名"} else (owner, thing)
    if len(noun) > len("名字"):
        noun = noun.removesuffix("名字")
    if not noun:
        return None
    relation = RELATIONS.get(noun.lower()) or re.sub(r"(?<=..)(?:日期|时间)$", "", noun.lower())
    if subject in {None, GROUP} and relation in (PERSONAL if is_ours else _HOUSEHOLD):
        subject = SPEAKER
    return Slot(relation, subject or GROUP)


_ADJECTIVE: Final = lazy_pattern(
    r"^(?:新的?|现在的?|目前的?|当前的?|最新的?|旧的?|老(?!板|师|婆|公)的?|以前的?|之前的?|原来的?|最初的?"
    r"|第一个?|上一个?)"
)
_KIN: Final = r"(?:女儿|儿子|妈妈?|爸爸?|哥哥?|姐姐?|弟弟?|妹妹?|孩子|朋友|狗|猫)(?!朋友)"

_ASK_FILLER: Final = lazy_pattern(
    r"现在|目前|如今|还|以前|之前|原来|原先|最初|最早|过去|曾经|从前|一开始|当初|请问|你知道|你记得|记得|告诉我"
    r"|呢|啊|呀|吗|来着|又|最近|今年|早先|先前|本来|第一[次个份家位]"
)
_QUESTIONS: Final = tuple(
    (lazy_pattern(pattern), relations.split("|"))
    for pattern, relations in (
        ((
            r"(?P<s>.{0,6}?)(?:居)?住(?:在|过)?(?:哪|什么(?:地方|城市)|何处)|(?P<s2>.{0,6}?)在(?:哪里|哪儿"
                r"|哪个城市|什么城市)(?:居住|生活|住)|"
            r"(?P<s3>.{0,6}?)(?:搬|搬家)到(?:了)?(?:哪|什么)"
        ), "home|address"),
        (r"(?P<s>.{0,6}?)(?:家|老?家)在(?:哪|什么)", "home|address"),
        (r"(?P<s>.{0,6}?)在(?:哪|什么)(?:里|儿|家|个)?(?:公司|单位|地方)?(?:工作|上班|任职|就职)", "employer|job"),
        ((
            r"(?P<s>.{0,6}?)(?:是)?(?:做|干)(?:什么|啥)(?:工作|职业|的)|(?P<s2>.{0,6}?)的?(?:工作|职业|职位)是("
                r"?:什么|啥)|"
            r"(?P<s3>.{0,6}?)做什么$"
        ), "job|employer"),
        (r"(?P<s>.{0,6}?)(?:多大|几岁|多少岁)|(?P<s2>.{0,6}?)的?年龄", "age"),
        (r"(?P<s>.{0,6}?)(?:有)?多高", "height"), (r"(?P<s>.{0,6}?)(?:有)?多重", "weight"),
        (r"(?P<s>.{0,6}?)开(?:的是|的|过)?(?:什么|哪)(?:种|款|辆|个)?(?:牌子的)?车?", "car"),
        (r"(?P<s>.{0,6}?)(?:是|吃)(?:不是)?(?:素食|素|肉|荤)", "diet"),
        (r"(?P<s>.{0,6}?)在哪(?:里|儿|所|个)?(?:学校|大学)?(?:上学|读书|念书)", "school"),
        (r"(?P<s>.{0,6}?)(?:和|跟|与)谁(?:结婚|在一起|交往)", "partner"),
        (r"(?P<s>.{0,6}?)(?:结婚|单身|离婚)(?:了)?(?:没有?|$)", "marital status|partner"),
    )
)  # fmt: skip
_ASK_TOOL: Final = lazy_pattern(
    r"^(?P<s>.{0,10}?)(?:使用|用)(?:的是|的|了|过)?(?:什么|哪(?:个|种|款|家|门)?)(?P<kind>.{0,8}?)("
    r"?P<what>写代码|记笔记|做笔记|编程|开发|办公"
    r"|聊天|上网)?$"
)
_ASK_TIME: Final = lazy_pattern(
    r"^(?P<s>.{0,6}?)(?:早上|晚上|每天)?(?:几点|什么时候|什么时间)(?P<what>起床|睡觉|上班|下班|吃饭)$"
)
_ASK_NOUN: Final = lazy_pattern(
    r"^(?P<noun>.{1,16}?)(?:是|叫|在|定在|改到|改在|定于|为|设为|设置为|到)?(?:的)?(?:什么|哪|几|多少|谁|何时"
    r"|啥)(?:里|儿|天|时候|时间|点|名字|地方|个|位|号"
    r"|月|钱|种|家|一天|会议室|房间|版本|颜色)*(?:举行|开|开始|进行|结束|出发|起飞)?$|^(?P<plain>(?:我|我们"
    r"|用户)的.{1,12})$"
    r"|^谁是(?P<who>.{1,12})$|^(?P<opens>.{1,12}?)(?:几点|什么时候)(?:开始|开|结束|举行|出发|起飞)$"
)


def asked(question: str) -> Iterator[Slot]:
    """Yield the slots that a question asks for."""
    words = re.sub(r"在?[^，,]*?(?:之前|以前)(?=[，,我])[，,]?", "", question.strip(" ?？。！!"))
    words = _ASK_FILLER.sub("", words).strip(" ，,")
    for rule in (_by_relation, _by_tool, _by_time, _by_noun):
        if found := list(rule(words)):
            yield from found
            return


def _by_relation(words: str) -> Iterator[Slot]:
    for pattern, relations in _QUESTIONS:
        if match := pattern.match(words):
            who = next((value for value in match.groupdict().values() if value is not None), "")
            for relation in relations:
                yield Slot(relation, _asked_subject(who, relation))
            return


def _by_tool(words: str) -> Iterator[Slot]:
    if match := _ASK_TOOL.match(words):
        kind = RELATIONS.get(match["kind"].lower(), match["kind"].lower())
        kind = "phone model" if kind in {"phone", "手机"} else kind
        subject = _asked_subject(match["s"], kind)
        subject = GROUP if subject in _PROJECT else subject
        for relation in filter(None, [kind, USES, match["what"] and f"{USES} {match['what']}"]):
            yield Slot(relation, subject)


def _by_time(words: str) -> Iterator[Slot]:
    if match := _ASK_TIME.match(words):
        yield Slot(match["what"], _asked_subject(match["s"], ""))


def _by_noun(words: str) -> Iterator[Slot]:
    if match := _ASK_NOUN.match(words):
        slot = noun_slot(next(filter(None, match.groups()), ""), None)
        yield from slots_of_question(slot) if slot else ()


def _asked_subject(who: str, relation: str) -> str:
    who = who.strip(" 的")
    if who in {"", "我", "用户"}:
        return SPEAKER
    if who in {"我们", "咱们", "团队"}:
        return SPEAKER if relation in PERSONAL else GROUP
    return _name_of(who)


_PAST: Final = lazy_pattern(
    r"以前|之前|原来|原先|最初|最早|过去|曾经|从前|一开始|当初|早先|先前|本来|旧的?|第一[个份家位次]|上一"
    r"[个份家位任]|前任|前一[个任]|前女友|前男友|换之前|住过|开过|用过"
)


def is_about_past(question: str) -> bool:
    """Return True if a question asks for what was, not for what is."""
    return _PAST.search(question) is not None
