"""Rules that recognise what a message says, in English and Chinese, where no language model does.

A message is filed by its first sentence that a rule takes, the telling kinds first: a decision before a preference
before a fact. Rules would rather miss one than take small talk for one. They are tried on folded text (lower case, one
form of each character) and on short messages alone: a long text says many things, and is none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from django.conf import settings

from store.text.normalize import fold

MAX_CHARS: Final = 600
_END: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_SPEAKER: Final = re.compile(r"^[^\W\d_][\w .'-]{0,40}:\s+")
_QUESTION: Final = re.compile(
    r"\?|[吗呢么]\s*[.。!?]*\s*$|^(?:请问|为什么|怎么|如何|什么|哪|谁|是否)|"
    r"^(?:is|are|do|does|did|can|could|should|would|will|what|why|how|when|where|who|which|shall)\b"
)
_SUPPOSED: Final = re.compile(
    r"\b(?:if(?<!useful if)(?<!nice if)(?<!helpful if)(?<!great if)(?<!good if)(?<!better if)|"
    r"unless|whether|suppose|imagine|in case|pretend)\b|"
    r"如果|要是|假如|假设|万一|的话|是不是|要不要"
)


class _Rule(NamedTuple):
    """What a sentence of the category holds or begins with, and what it must not hold; Chinese apart, so that an
    English sentence is not looked through for Chinese words."""

    category: str
    english: re.Pattern[str]
    beginning: re.Pattern[str]
    chinese: re.Pattern[str]
    never: re.Pattern[str]

    def takes(self, sentence: str) -> bool:
        holds = (
            self.english.search(sentence)
            or self.beginning.match(sentence)
            or (not sentence.isascii() and self.chinese.search(sentence))
        )
        return bool(holds) and not self.never.search(sentence)


def _rule(category: str, holds: Sequence[str], never: Sequence[str]) -> _Rule:
    chinese = [one for one in holds if not one.isascii()]
    beginning = [one for one in holds if one.isascii() and one.startswith("^")]
    english = [one for one in holds if one.isascii() and not one.startswith("^")]
    return _Rule(
        category,
        re.compile(_any_of(english)),
        re.compile("|".join(beginning) or _NOTHING),
        re.compile("|".join(chinese)),
        re.compile("|".join(never)),
    )


def _any_of(patterns: Sequence[str]) -> str:
    """What begins with a word goes together: each alone would be tried inside of words too, which takes longest."""
    words = [one.removeprefix(r"\b") for one in patterns if one.startswith(r"\b")]
    return "|".join([rf"\b(?:{'|'.join(words)})", *(one for one in patterns if not one.startswith(r"\b"))])


_NOTHING: Final = "(?!)"
_ADVERB: Final = (
    r"(?:(?:really|much|strongly|absolutely|still|always|usually|generally|personally|also|just|so|do|truly|actually|"
    r"definitely|most|very much|totally|kind of) )*"
)
_RELATIVE: Final = (
    "(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|kid|kids|child|children|mother|mom|mum|father|dad|"
    "brother|sister|parents|dog|cat|boss|manager|team|company|landlord|doctor)"
)
_JOB: Final = (
    "(?:师|员|生|人|家|医|教授|经理|总监|主管|老板|护士|律师|会计|编辑|博士|硕士|厨师|司机|警察|军人|素食者|"
    "左撇子|独生子女?)"
)
_OF_USERS: Final = (
    _rule(
        "user_memory_decision",
        (
            (
                r"\b(?:i|we)(?:'ve| have| had)?(?: (?:finally|just|already|now|both|all))* (?:decided|"
                r"agreed|resolved|settled on|"
                r"opted|chose|chosen|picked|signed off|committed)\b"
            ),
            r"\bi(?:'ve| have)? made up my mind\b",
            (
                r"\b(?:i|we)(?:'ll| will|'re going to| are going to|'m going to| am going to|'re| are|'m|"
                r" am) (?:go|going|stick|"
                r"sticking) with\b"
            ),
            r"^let's (?:go|stick) with\b",
            r"\b(?:the|our|my) (?:final )?(?:decision|choice|verdict) (?:is|was)\b",
            r"^(?:final )?decision ?:",
            r"\b(?:it's|that's|it is|that is) (?:settled|decided|final)\b",
            (
                r"我们?(?:俩|大家|全家|最后|最终|已经|终于|刚刚|一致|今天|昨天|也|都|就)*(?:决定|敲定|商定|"
                r"约定|说好|选定|拍板|定下|选择)了?(?!权)"
            ),
            r"我们?(?:俩|最后|最终|已经|终于)*(?:打定主意|下定决心|选了|改用|改成)",
            r"就(?:这么|这样)?(?:定了|决定了|说定了)",
            r"^(?:最终)?决定[::]",
            r"^(?:会议|大家|团队|一致|最终|最后)(?:一致|最终|最后)?(?:决定|同意|通过)",
        ),
        (
            (
                r"\b(?:not|never|haven't|hasn't|hadn't|can't|cannot|couldn't|didn't|yet to|help (?:me|"
                r"us))\b.{0,30}\b(?:decide|"
                r"decided|agree|agreed|choose|chosen|settled|go with|sure)"
            ),
            r"\bundecided\b|\bno (?:final )?decision\b|\bagreed? with you\b",
            r"(?:还没|没有|尚未|没|未|无法|不能|难以|不|没法)(?:最终|最后|真正)?(?:决定|敲定|商定|选定|定下|说好|选择)",
            r"由你决定|你决定|帮我(?:们)?决定|决定不了|决定因素|取决|再决定|选择困难",
        ),
    ),
    _rule(
        "user_memory_preference",
        (
            rf"\bi {_ADVERB}(?:like|love|prefer|enjoy|hate|dislike|adore|detest|loathe|favou?r|despise)\b",
            (
                rf"\bi {_ADVERB}(?:don't|do not|never|can't|cannot|didn't|no longer) {_ADVERB}(?:like|love|"
                rf"enjoy|stand|bear|eat|drink|"
                r"want (?:any|you to))\b"
            ),
            r"\bmy (?:all-time )?(?:favou?rite|preferred|preference|least favou?rite)\b",
            r"\bi(?:'d| would) (?:much )?(?:rather|prefer)\b",
            (
                r"\bi(?:'m| am) (?:a )?(?:really |very |quite |so |big |huge |not )*(?:fond of|into|"
                r"keen on|fan of|crazy about|"
                r"partial to)\b"
            ),
            r"^(?:please )?(?:just )?call me \w+",
            r"^(?:please,? )?(?:always|never) (?:\w+)",
            r"^(?:from now on|in (?:the )?future),? (?:please )?(?!i\b)\w+",
            (
                r"我(?:个人|真的|一直|其实|平时|从小|就|也|还是|都|最|特别|非常|比较|更|很|挺|超|超级|"
                r"不太|不|不怎么|从不|从来不)*"
                r"(?:喜欢|喜爱|热爱|偏爱|偏好|讨厌|厌恶|习惯|倾向于?|受不了|欣赏)"
            ),
            r"我(?:最|很|特别|非常|超|不|从不|从来不|一直|平时)*(?:爱|吃不惯|喝不惯)(?:吃|喝|看|听|玩|去|用|读|穿)?",
            r"我(?:从不|从来不|不|一般不)(?:吃|喝|抽|用)",
            r"我(?:宁愿|宁可|情愿)",
            r"我的(?:偏好|喜好|爱好|最爱|习惯)(?:是|:)",
            r"我最(?:喜欢|爱|讨厌)的",
            r"^(?:请)?(?:叫|称呼)我",
            r"^(?:以后|今后|从现在起|从今以后|往后)[,,]?(?:都|请|就|一律|不要|别|用)",
            r"^请(?:始终|总是|一直|永远|务必|一律|不要再|别再)",
        ),
        (
            (
                r"\bi(?:'d| would) (?:really )?(?:like|love|hate) to\b|\bi (?:like|love|hate) to (?:think|say|"
                r"admit|bother|ask)\b"
            ),
            (
                r"\b(?:i (?:like|love) (?:that idea|your (?:idea|answer|plan|suggestion)|it|this|"
                r"you)(?! (?:when|better)))(?=\W*$)"
            ),
            r"\bi'd like\b|\bi would like\b|\bi (?:don't|do not) like to (?:bother|ask)\b|\bnever ?mind\b",
            (
                r"我(?:爱你|爱她|爱他|爱人)|我喜欢(?:你的(?:回答|建议|主意)|这个(?:主意|想法|回答))|"
                r"习惯了就好|请务必(?:查|看|帮)"
            ),
        ),
    ),
    _rule(
        "user_memory_fact",
        (
            (
                r"\bmy (?:full |first |last |middle )?(?:name|birthday|birth date|job|phone number|"
                r"address|email|email address|"
                r"hometown|nationality|timezone|time zone|blood type|native language|occupation|"
                r"profession|age) (?:is|was|are)\b"
            ),
            rf"\bmy (?:\w+ )?{_RELATIVE} (?:is|are|was|has|have|lives?|works?|studies|likes?|loves?|turned|called)\b",
            (
                r"\bi (?:live|work|study|teach|grew up|was born|moved|speak|own|drive|majored|graduated|"
                r"used to (?:live|work))\b"
            ),
            r"\bi(?:'m| am) (?:an? |the )(?!bit\b|little\b|fan\b|big fan\b|huge fan\b|lot\b)(?:\w+ ){0,3}\w+",
            (
                r"\bi(?:'m| am) (?:from|allergic|married|divorced|single|retired|vegan|vegetarian|"
                r"pregnant|left-handed|\d{1,3} years|"
                r"based in|originally|diabetic|self-employed)\b"
            ),
            (
                rf"\bi have (?:an? |two |three |four |five |\d+ |no )(?:\w+ )?(?:{_RELATIVE}s?|siblings?|"
                rf"brothers?|sisters?|sons?|"
                r"daughters?|dogs?|cats?|house|flat|apartment|car|allergy|degree|phd|master's|cars|pets?)\b"
            ),
            r"\bi(?:'ve| have) (?:been|lived|worked) (?:\w+ ){0,3}(?:in|at|for|as)\b",
            r"我(?:的名字)?(?:叫|姓)\w",
            (
                r"我(?:现在|目前|一直|以前|从小|曾经|家)?(?:住在|住|定居|出生于|出生在|毕业于|来自|就职于|"
                r"任职于|搬到|搬去|长大在)\w"
            ),
            r"我(?:现在|目前|以前|一直)?在\w{1,20}(?:工作|上班|上学|读书|念书|长大|出生|任职|实习)",
            rf"我(?:现在|目前|以前)?是(?:一名|一位|一个|个|名|位)?[^,,。是]{{0,14}}{_JOB}[。.!!]?$",
            r"我(?:今年)?\d{1,3}岁",
            (
                r"我(?:有|家有|养了?)(?:一|两|二|三|四|五|\d)?[个只条位辆套]?\w{0,4}(?:孩子|儿子|女儿|猫|狗|"
                r"弟弟|妹妹|哥哥|姐姐|房|车)"
            ),
            (
                r"我(?:的)?(?:妻子|老婆|丈夫|老公|儿子|女儿|孩子|妈妈|母亲|爸爸|父亲|哥哥|姐姐|弟弟|妹妹|"
                r"女朋友|男朋友|公司|老板|团队|"
                r"狗|猫|生日|电话|手机号|地址|邮箱|籍贯|老家|职业|母语|血型|时区|年龄|家乡|专业|"
                r"血压)\w*(?:是|叫|在|有|为|住|姓|:)"
            ),
            r"我对\w{1,12}过敏|我(?:已经)?(?:结婚|离婚|退休|怀孕)了?|我(?:会说|说|母语是)\w{1,8}[语话]",
        ),
        (
            (
                r"\bmy (?:wife|husband|boss|team|manager|\w+) (?:is|was|has|have) (?:right|wrong|asking|late|"
                r"calling|waiting)\b"
            ),
            (
                r"\bi(?:'m| am) (?:a|an|the) (?:bit|little|mess|idiot|one who|same)\b|\bi have (?:a|"
                r"no) (?:question|idea|problem|clue)"
            ),
            (
                r"\bi work(?:ed)? (?:on (?:it|this|that)|out)\b|\bi'm (?:not|sorry|sure|afraid|glad|going|"
                r"looking)\b|\bnot\b.{0,12}\btrue\b"
            ),
            (
                r"我(?:的)?(?:老板|公司|团队|\w{2})(?:说|问|让)|我是说|我是想|我是不是|我有[点个些](?:问题|"
                r"疑问|累|困|想法)|我叫(?:你|他|她|它|了|外卖|车)"
            ),
        ),
    ),
)
_OF_AGENTS: Final = (
    _rule(
        "self_improving_feature_requests",
        (
            r"\bfeature requests?\b",
            r"\bit (?:would|might) be (?:very |really |more )?(?:useful|nice|helpful|great|good) (?:if|to have)\b",
            (
                r"\b(?:the )?(?:user|users|customer|they) (?:has |have |would )?(?:asked|ask|asks|wants?|"
                r"wished|like|requested|requests?)"
                r" (?:for|me to|to have|that i|support|a way)\b"
            ),
            (
                r"\bi wish i (?:could|had)\b|\bi (?:need|lack|would need) (?:a|an|the) (?:tool|way|api|"
                r"permission|feature)\b"
            ),
            (
                r"\b(?:please|should|could) (?:add|support) (?:a|an|support|the)\b|\bmissing (?:feature|"
                r"support|capability)\b"
            ),
            r"(?:建议|希望|需要|应该|可以)(?:能)?(?:增加|添加|新增|支持|提供|开发)",
            r"功能(?:请求|建议|诉求|需求)",
            r"(?:用户|客户|他们?|她们?)(?:希望|要求|想要|提出|反馈希望)(?:我|能|可以|增加|支持|有)",
            r"(?:缺少|没有|缺乏)\w{0,12}(?:工具|功能|接口|权限|能力)",
        ),
        (
            (
                r"\bno feature requests?\b|\bhope (?:this|that|it) helps\b|\byou (?:should|could|can) add\b|"
                r"\bnot missing\b"
            ),
            r"希望(?:对你|能帮|可以帮|这)|没有(?:任何)?(?:其他)?(?:功能)?(?:请求|问题)|不需要",
        ),
    ),
    _rule(
        "self_improving_errors",
        (
            r"\b(?:i made|my|that was my|this was my) (?:a |an )?(?:\w+ )?(?:mistake|error|bug|fault|bad)\b",
            (
                r"\bi was (?:wrong|mistaken)\b|\bi (?:misread|misunderstood|miscalculated|overlooked|forgot|"
                r"broke|mixed up)\b"
            ),
            (
                r"\b(?:command|request|call|build|test|tests|deployment|migration|upload|download|script|"
                r"step|query|job|import|attempt)s?"
                r" (?:has |have |had )?(?:failed|crashed|timed out|broke|errored)\b"
            ),
            r"\bfailed (?:with|because|due to|to \w+)\b|\b\w*(?:error|exception): \S",
            r"^traceback\b",
            r"\b(?:sorry|apologi[sz]e|apologies),? (?:i|for (?:the|my) (?:mistake|error|confusion|wrong))\b",
            r"\b(?:raised|threw|throws|returned|got|hit) an? (?:\w+ )?(?:error|exception|timeout)\b",
            r"我(?:刚才|之前|上次|又)?(?:弄|搞|理解|说|算|写|看|记|做|用|填|答)错了?",
            r"(?:我的|是我的)(?:错|失误|疏忽)|我(?:忘了|忘记|漏掉|漏了|误解|误会|忽略)",
            (
                r"(?:报错|出错|崩溃|超时|抛出异常|执行失败|调用失败|运行失败|构建失败|上传失败|下载失败|"
                r"部署失败|测试失败|请求失败|连接失败)"
            ),
            r"(?:抱歉|对不起)[,,]?\s?(?:我|刚才|之前)",
        ),
        (
            (
                r"\b(?:no|without|any|zero|0|avoid|prevent|handle|handles|handling|never|not|"
                r"fixed the) (?:\w+ ){0,2}(?:errors?|"
                r"exceptions?|mistakes?|failed|failures?|crash\w*|timeouts?)\b|\bsorry,? i (?:can't|cannot|don't)\b"
            ),
            (
                r"(?:没有|没|不会|未|避免|防止|不再|无|不)(?:\w{0,3})(?:报错|出错|崩溃|超时|异常|失败|弄错|"
                r"搞错)|(?:抱歉|对不起)[,,]?\s?我(?:不能|无法)"
            ),
        ),
    ),
    _rule(
        "self_improving_learnings",
        (
            (
                r"\blessons?(?: learn(?:ed|t))?\b ?(?:is|:|was|here)|\blessons? learn(?:ed|t)\b|\b(?:i|"
                r"we)(?:'ve| have)? learn(?:ed|t) (?:that|to|how|from)\b"
            ),
            (
                r"\bnext time,? (?:i|we)(?:'ll| will| should| need)\b|\b(?:i|we)(?:'ll| will|"
                r" should) \w+ .{0,60}\bnext time\b"
            ),
            (
                r"\bbest practice\b|\bnote to self\b|\bthe (?:trick|key|fix|right way|solution) (?:is|was)\b|"
                r"\bkey takeaway\b"
            ),
            r"\bworks? (?:much |far )?(?:better|best|more reliably|faster) (?:when|if|to|with|than)\b",
            (
                r"\bturns? out (?:that )?\w+|\bturned out\b|\bin (?:the )?future,? i(?:'ll| will| should)\b|"
                r"\bfrom now on,? i(?:'ll| will)\b"
            ),
            r"\b(?:always|never) \w+ .{0,60}\b(?:before|after|first)\b|\bremember to \w+",
            r"(?:经验|教训|心得)(?:是|教训|总结|[::])|学到(?:了|的)?|最佳实践|吸取教训",
            (
                r"下次(?:我|我们|再|遇到|应|要|就|先|会|一定)|以后(?:我|我们|遇到|应|要|都|就|先|会)\w*(?:先|"
                r"会|要|应|再|用|避免)"
            ),
            (
                r"(?:关键|诀窍|窍门|正确(?:的)?做法|解决(?:办法|方法))(?:是|在于|[::])|原来(?:是|要|需要|"
                r"必须)|(?:更|最)(?:有效|可靠|稳妥|快)的(?:方法|做法|办法)"
            ),
            r"记住[,,::]?\s?(?:要|先|不要|别|每次)",
        ),
        (
            (
                r"\b(?:i|we) (?:haven't|have not|didn't) learn|\bnot (?:a|the) best practice\b|\bturn(?:s|"
                r"ed)? out (?:fine|well|ok)\b|"
                r"\bremember to (?:bring|buy|call|pack)\b"
            ),
            r"没(?:有)?学到|下次(?:再见|见|聊|再聊)|以后再(?:说|聊)",
        ),
    ),
)
_RULES: Final[Mapping[str, Sequence[_Rule]]] = {"user": _OF_USERS, "assistant": _OF_AGENTS}


def category(role: str, text: str) -> str:
    """What a message of a role is about; empty where no rule takes it."""
    rules = _RULES.get(role, ())
    if len(text) > MAX_CHARS or (role == "assistant" and not settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY):
        return ""
    told = _SPEAKER.sub("", text, count=1)
    sentences = _sentences(text) + (_sentences(told) if told != text else [])
    for rule in rules:
        if any(rule.takes(one) and _is_stated(one) for one in sentences):
            return rule.category
    return ""


def _sentences(text: str) -> list[str]:
    return [fold(one).strip() for one in _END.split(text)]


def _is_stated(sentence: str) -> bool:
    """Neither a question nor a supposition. Few sentences come to be asked: most are of no category."""
    return not _QUESTION.search(sentence) and not _SUPPOSED.search(sentence)
