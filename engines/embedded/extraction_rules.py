"""Choose the category of a message by rules, in English and Chinese, if no language model is configured.

The first matching rule decides: decisions before preferences before facts. The rules prefer false negatives to false
positives. They match folded text (`store.text.normalize`) of short messages; a long text has several subjects and gets
no category.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from django.conf import settings

from core.patterns import lazy_pattern
from store.text.normalize import fold

MAX_CHARS: Final = 600
_SENTENCE_END: Final = lazy_pattern(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_SPEAKER: Final = lazy_pattern(r"^[^\W\d_][\w .'-]{0,40}:\s+")
_QUESTION: Final = lazy_pattern(
    r"\?|[吗呢么]\s*[.。!?]*\s*$|^(?:请问|为什么|怎么|如何|什么|哪|谁|是否)|^(?:is|are|do|does|did|can|could|should|"
    r"would|will|what|why|how|when|where|who|which|shall)\b"
)
_HYPOTHETICAL: Final = lazy_pattern(
    r"\b(?:if(?<!useful if)(?<!nice if)(?<!helpful if)(?<!great if)(?<!good if)(?<!better if)|unless|whether|suppose|"
    r"imagine|in case|pretend)\b|如果|要是|假如|假设|万一|的话|是不是|要不要"
)


class _Rule(NamedTuple):
    """A category, patterns of its sentences in each language, and patterns that exclude a sentence."""

    category: str
    english: re.Pattern[str]
    chinese: re.Pattern[str]
    excluded: re.Pattern[str]

    def matches(self, sentence: str) -> bool:
        # Chinese patterns are skipped for English sentences, which halves the time.
        is_match = self.english.search(sentence) or (not sentence.isascii() and self.chinese.search(sentence))
        return bool(is_match) and not self.excluded.search(sentence)


_PLACEHOLDERS: Final = {
    "<adverb>": (
        r"(?:(?:really|much|strongly|absolutely|still|always|usually|generally|personally|also|just|so|do|truly|"
        r"actually|definitely|most|very much|totally|kind of) )*"
    ),
    "<relative>": (
        "(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|kid|kids|child|children|mother|mom|mum|father|dad|"
        "brother|sister|parents|dog|cat|boss|manager|team|company|landlord|doctor)"
    ),
    "<job>": (
        "(?:师|员|生|人|家|医|教授|经理|总监|主管|老板|护士|律师|会计|编辑|博士|硕士|厨师|司机|警察|军人|素食者|左撇子|"
        "独生子女?)"
    ),
}
"""Placeholders in patterns, and the expressions that replace them."""


def _rule(category: str, patterns: str, excluded: str) -> _Rule:
    """Compile a rule from patterns, one per line; an indented line continues the one before.

    English patterns that begin with a word boundary are combined behind a single one, which is faster.
    """
    words, others, chinese = [], [], []
    for pattern in _lines(patterns):
        if not pattern.isascii():
            chinese.append(pattern)
        elif pattern.startswith(r"\b"):
            words.append(pattern.removeprefix(r"\b"))
        else:
            others.append(pattern)
    return _Rule(
        category,
        lazy_pattern("|".join([rf"\b(?:{'|'.join(words)})", *others])),
        lazy_pattern("|".join(chinese)),
        lazy_pattern("|".join(_lines(excluded))),
    )


def _lines(patterns: str) -> list[str]:
    for name, words in _PLACEHOLDERS.items():
        patterns = patterns.replace(name, words)
    return re.sub(r"\n +(?=\S)", "", patterns).strip().split("\n")


_USER_RULES: Final = (
    _rule(
        "user_memory_decision",
        r"""
\b(?:i|we)(?:'ve| have| had)?(?: (?:finally|just|already|now|both|all))* (?:decided|agreed|resolved|settled on|opted|
    chose|chosen|picked|signed off|committed)\b
\bi(?:'ve| have)? made up my mind\b
\b(?:i|we)(?:'ll| will|'re going to| are going to|'m going to| am going to|'re| are|'m| am) (?:go|going|stick|
    sticking) with\b
^let's (?:go|stick) with\b
\b(?:the|our|my) (?:final )?(?:decision|choice|verdict) (?:is|was)\b
^(?:final )?decision ?:
\b(?:it's|that's|it is|that is) (?:settled|decided|final)\b
我们?(?:俩|大家|全家|最后|最终|已经|终于|刚刚|一致|今天|昨天|也|都|就)*(?:决定|敲定|商定|约定|说好|选定|拍板|定下|
    选择)了?(?!权)
我们?(?:俩|最后|最终|已经|终于)*(?:打定主意|下定决心|选了|改用|改成)
就(?:这么|这样)?(?:定了|决定了|说定了)
^(?:最终)?决定[::]
^(?:会议|大家|团队|一致|最终|最后)(?:一致|最终|最后)?(?:决定|同意|通过)
        """,
        r"""
\b(?:not|never|haven't|hasn't|hadn't|can't|cannot|couldn't|didn't|yet to|help (?:me|us))\b.{0,30}\b(?:decide|decided|
    agree|agreed|choose|chosen|settled|go with|sure)
\bundecided\b|\bno (?:final )?decision\b|\bagreed? with you\b
(?:还没|没有|尚未|没|未|无法|不能|难以|不|没法)(?:最终|最后|真正)?(?:决定|敲定|商定|选定|定下|说好|选择)
由你决定|你决定|帮我(?:们)?决定|决定不了|决定因素|取决|再决定|选择困难
        """,
    ),
    _rule(
        "user_memory_preference",
        r"""
\bi <adverb>(?:like|love|prefer|enjoy|hate|dislike|adore|detest|loathe|favou?r|despise)\b
\bi <adverb>(?:don't|do not|never|can't|cannot|didn't|no longer) <adverb>(?:like|love|enjoy|stand|bear|eat|drink|
    want (?:any|you to))\b
\bmy (?:all-time )?(?:favou?rite|preferred|preference|least favou?rite)\b
\bi(?:'d| would) (?:much )?(?:rather|prefer)\b
\bi(?:'m| am) (?:a )?(?:really |very |quite |so |big |huge |not )*(?:fond of|into|keen on|fan of|crazy about|
    partial to)\b
^(?:please )?(?:just )?call me \w+
^(?:please,? )?(?:always|never) (?:\w+)
^(?:from now on|in (?:the )?future),? (?:please )?(?!i\b)\w+
我(?:个人|真的|一直|其实|平时|从小|就|也|还是|都|最|特别|非常|比较|更|很|挺|超|超级|不太|不|不怎么|从不|
    从来不)*(?:喜欢|喜爱|热爱|偏爱|偏好|讨厌|厌恶|习惯|倾向于?|受不了|欣赏)
我(?:最|很|特别|非常|超|不|从不|从来不|一直|平时)*(?:爱|吃不惯|喝不惯)(?:吃|喝|看|听|玩|去|用|读|穿)?
我(?:从不|从来不|不|一般不)(?:吃|喝|抽|用)
我(?:宁愿|宁可|情愿)
我的(?:偏好|喜好|爱好|最爱|习惯)(?:是|:)
我最(?:喜欢|爱|讨厌)的
^(?:请)?(?:叫|称呼)我
^(?:以后|今后|从现在起|从今以后|往后)[,,]?(?:都|请|就|一律|不要|别|用)
^请(?:始终|总是|一直|永远|务必|一律|不要再|别再)
        """,
        r"""
\bi(?:'d| would) (?:really )?(?:like|love|hate) to\b|\bi (?:like|love|hate) to (?:think|say|admit|bother|ask)\b
\b(?:i (?:like|love) (?:that idea|your (?:idea|answer|plan|suggestion)|it|this|you)(?! (?:when|better)))(?=\W*$)
\bi'd like\b|\bi would like\b|\bi (?:don't|do not) like to (?:bother|ask)\b|\bnever ?mind\b
我(?:爱你|爱她|爱他|爱人)|我喜欢(?:你的(?:回答|建议|主意)|这个(?:主意|想法|回答))|习惯了就好|请务必(?:查|看|帮)
        """,
    ),
    _rule(
        "user_memory_fact",
        r"""
\bmy (?:full |first |last |middle )?(?:name|birthday|birth date|job|phone number|address|email|email address|hometown|
    nationality|timezone|time zone|blood type|native language|occupation|profession|age) (?:is|was|are)\b
\bmy (?:\w+ )?<relative> (?:is|are|was|has|have|lives?|works?|studies|likes?|loves?|turned|called)\b
\bi (?:live|work|study|teach|grew up|was born|moved|speak|own|drive|majored|graduated|used to (?:live|work))\b
\bi(?:'m| am) (?:an? |the )(?!bit\b|little\b|fan\b|big fan\b|huge fan\b|lot\b)(?:\w+ ){0,3}\w+
\bi(?:'m| am) (?:from|allergic|married|divorced|single|retired|vegan|vegetarian|pregnant|left-handed|\d{1,3} years|
    based in|originally|diabetic|self-employed)\b
\bi have (?:an? |two |three |four |five |\d+ |no )(?:\w+ )?(?:<relative>s?|siblings?|brothers?|sisters?|sons?|
    daughters?|dogs?|cats?|house|flat|apartment|car|allergy|degree|phd|master's|cars|pets?)\b
\bi(?:'ve| have) (?:been|lived|worked) (?:\w+ ){0,3}(?:in|at|for|as)\b
我(?:的名字)?(?:叫|姓)\w
我(?:现在|目前|一直|以前|从小|曾经|家)?(?:住在|住|定居|出生于|出生在|毕业于|来自|就职于|任职于|搬到|搬去|长大在)\w
我(?:现在|目前|以前|一直)?在\w{1,20}(?:工作|上班|上学|读书|念书|长大|出生|任职|实习)
我(?:现在|目前|以前)?是(?:一名|一位|一个|个|名|位)?[^,,。是]{0,14}<job>[。.!!]?$
我(?:今年)?\d{1,3}岁
我(?:有|家有|养了?)(?:一|两|二|三|四|五|\d)?[个只条位辆套]?\w{0,4}(?:孩子|儿子|女儿|猫|狗|弟弟|妹妹|哥哥|姐姐|房|车)
我(?:的)?(?:妻子|老婆|丈夫|老公|儿子|女儿|孩子|妈妈|母亲|爸爸|父亲|哥哥|姐姐|弟弟|妹妹|女朋友|男朋友|公司|老板|团队|
    狗|猫|生日|电话|手机号|地址|邮箱|籍贯|老家|职业|母语|血型|时区|年龄|家乡|专业|血压)\w*(?:是|叫|在|有|为|住|姓|:)
我对\w{1,12}过敏|我(?:已经)?(?:结婚|离婚|退休|怀孕)了?|我(?:会说|说|母语是)\w{1,8}[语话]
        """,
        r"""
\bmy (?:wife|husband|boss|team|manager|\w+) (?:is|was|has|have) (?:right|wrong|asking|late|calling|waiting)\b
\bi(?:'m| am) (?:a|an|the) (?:bit|little|mess|idiot|one who|same)\b|\bi have (?:a|no) (?:question|idea|problem|clue)
\bi work(?:ed)? (?:on (?:it|this|that)|out)\b|\bi'm (?:not|sorry|sure|afraid|glad|going|looking)\b|
    \bnot\b.{0,12}\btrue\b
我(?:的)?(?:老板|公司|团队|\w{2})(?:说|问|让)|我是说|我是想|我是不是|我有[点个些](?:问题|疑问|累|困|想法)|我叫(?:你|
    他|她|它|了|外卖|车)
        """,
    ),
)
_AGENT_RULES: Final = (
    _rule(
        "self_improving_feature_requests",
        r"""
\bfeature requests?\b
\bit (?:would|might) be (?:very |really |more )?(?:useful|nice|helpful|great|good) (?:if|to have)\b
\b(?:the )?(?:user|users|customer|they) (?:has |have |would )?(?:asked|ask|asks|wants?|wished|like|requested|
    requests?) (?:for|me to|to have|that i|support|a way)\b
\bi wish i (?:could|had)\b|\bi (?:need|lack|would need) (?:a|an|the) (?:tool|way|api|permission|feature)\b
\b(?:please|should|could) (?:add|support) (?:a|an|support|the)\b|\bmissing (?:feature|support|capability)\b
(?:建议|希望|需要|应该|可以)(?:能)?(?:增加|添加|新增|支持|提供|开发)
功能(?:请求|建议|诉求|需求)
(?:用户|客户|他们?|她们?)(?:希望|要求|想要|提出|反馈希望)(?:我|能|可以|增加|支持|有)
(?:缺少|没有|缺乏)\w{0,12}(?:工具|功能|接口|权限|能力)
        """,
        r"""
\bno feature requests?\b|\bhope (?:this|that|it) helps\b|\byou (?:should|could|can) add\b|\bnot missing\b
希望(?:对你|能帮|可以帮|这)|没有(?:任何)?(?:其他)?(?:功能)?(?:请求|问题)|不需要
        """,
    ),
    _rule(
        "self_improving_errors",
        r"""
\b(?:i made|my|that was my|this was my) (?:a |an )?(?:\w+ )?(?:mistake|error|bug|fault|bad)\b
\bi was (?:wrong|mistaken)\b|\bi (?:misread|misunderstood|miscalculated|overlooked|forgot|broke|mixed up)\b
\b(?:command|request|call|build|test|tests|deployment|migration|upload|download|script|step|query|job|import|
    attempt)s? (?:has |have |had )?(?:failed|crashed|timed out|broke|errored)\b
\bfailed (?:with|because|due to|to \w+)\b|\b\w*(?:error|exception): \S
^traceback\b
\b(?:sorry|apologi[sz]e|apologies),? (?:i|for (?:the|my) (?:mistake|error|confusion|wrong))\b
\b(?:raised|threw|throws|returned|got|hit) an? (?:\w+ )?(?:error|exception|timeout)\b
我(?:刚才|之前|上次|又)?(?:弄|搞|理解|说|算|写|看|记|做|用|填|答)错了?
(?:我的|是我的)(?:错|失误|疏忽)|我(?:忘了|忘记|漏掉|漏了|误解|误会|忽略)
(?:报错|出错|崩溃|超时|抛出异常|执行失败|调用失败|运行失败|构建失败|上传失败|下载失败|部署失败|测试失败|请求失败|
    连接失败)
(?:抱歉|对不起)[,,]?\s?(?:我|刚才|之前)
        """,
        r"""
\b(?:no|without|any|zero|0|avoid|prevent|handle|handles|handling|never|not|fixed the) (?:\w+ ){0,2}(?:errors?|
    exceptions?|mistakes?|failed|failures?|crash\w*|timeouts?)\b|\bsorry,? i (?:can't|cannot|don't)\b
(?:没有|没|不会|未|避免|防止|不再|无|不)(?:\w{0,3})(?:报错|出错|崩溃|超时|异常|失败|弄错|搞错)|(?:抱歉|
    对不起)[,,]?\s?我(?:不能|无法)
        """,
    ),
    _rule(
        "self_improving_learnings",
        r"""
\blessons?(?: learn(?:ed|t))?\b ?(?:is|:|was|here)|\blessons? learn(?:ed|t)\b|\b(?:i|we)(?:'ve| have)? learn(?:ed|
    t) (?:that|to|how|from)\b
\bnext time,? (?:i|we)(?:'ll| will| should| need)\b|\b(?:i|we)(?:'ll| will| should) \w+ .{0,60}\bnext time\b
\bbest practice\b|\bnote to self\b|\bthe (?:trick|key|fix|right way|solution) (?:is|was)\b|\bkey takeaway\b
\bworks? (?:much |far )?(?:better|best|more reliably|faster) (?:when|if|to|with|than)\b
\bturns? out (?:that )?\w+|\bturned out\b|\bin (?:the )?future,? i(?:'ll| will| should)\b|
    \bfrom now on,? i(?:'ll| will)\b
\b(?:always|never) \w+ .{0,60}\b(?:before|after|first)\b|\bremember to \w+
(?:经验|教训|心得)(?:是|教训|总结|[::])|学到(?:了|的)?|最佳实践|吸取教训
下次(?:我|我们|再|遇到|应|要|就|先|会|一定)|以后(?:我|我们|遇到|应|要|都|就|先|会)\w*(?:先|会|要|应|再|用|避免)
(?:关键|诀窍|窍门|正确(?:的)?做法|解决(?:办法|方法))(?:是|在于|[::])|原来(?:是|要|需要|必须)|(?:更|最)(?:有效|可靠|
    稳妥|快)的(?:方法|做法|办法)
记住[,,::]?\s?(?:要|先|不要|别|每次)
        """,
        r"""
\b(?:i|we) (?:haven't|have not|didn't) learn|\bnot (?:a|the) best practice\b|\bturn(?:s|ed)? out (?:fine|well|ok)\b|
    \bremember to (?:bring|buy|call|pack)\b
没(?:有)?学到|下次(?:再见|见|聊|再聊)|以后再(?:说|聊)
        """,
    ),
)
_RULES: Final[Mapping[str, Sequence[_Rule]]] = {"user": _USER_RULES, "assistant": _AGENT_RULES}


def category(role: str, text: str) -> str:
    """Return the category of a message, empty if no rule matches."""
    rules = _RULES.get(role, ())
    if len(text) > MAX_CHARS or (role == "assistant" and not settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY):
        return ""
    variants = dict.fromkeys([text, _SPEAKER.sub("", text, count=1)])
    sentences = [fold(sentence).strip() for variant in variants for sentence in _SENTENCE_END.split(variant)]
    for rule in rules:
        for sentence in sentences:
            if rule.matches(sentence) and not _QUESTION.search(sentence) and not _HYPOTHETICAL.search(sentence):
                return rule.category
    return ""
