"""Words of slots: the relation that a noun names, whether it has one value at a time, and the kinds of tools."""

from typing import Final

_SYNONYMS = """
phone: phone|phone number|telephone|telephone number|mobile|mobile number|mobile phone number|cell|cell number|
 cell phone|cell phone number|cellphone|cellphone number|contact number|number|handynummer|telefonnummer|
 telefon|handy|mobilnummer|rufnummer|电话|电话号码|手机|手机号|手机号码|联系电话|号码
email: email|e-mail|email address|e-mail address|mail address|mail|mailadresse|e-mail-adresse|emailadresse|
 email-adresse|邮箱|邮箱地址|电子邮箱|电子邮件|邮件地址|电邮
address: address|home address|postal address|mailing address|street address|shipping address|delivery address|
 adresse|anschrift|wohnadresse|postadresse|lieferadresse|地址|家庭住址|住址|家庭地址|收货地址
home: home|home city|city|residence|place of residence|current city|wohnort|wohnsitz|stadt|zuhause|居住地|城市|家
job: job|occupation|profession|position|job title|role|title|current job|current role|beruf|job-titel|stelle|
 position|职业|工作|职位|岗位
employer: employer|company|workplace|arbeitgeber|firma|arbeitsplatz|公司|单位|雇主|工作单位
age: age|alter|年龄|岁数
height: height|größe|groesse|körpergröße|身高
weight: weight|gewicht|körpergewicht|体重
partner: partner|wife|husband|spouse|girlfriend|boyfriend|fiancé|fiance|fiancée|fiancee|ehemann|ehefrau|
 ehepartner|mann|frau|freundin|freund|partnerin|verlobte|verlobter|妻子|丈夫|老婆|老公|女朋友|男朋友|女友|男友|伴侣|对象|爱人
boss: boss|manager|supervisor|line manager|chef|chefin|vorgesetzter|vorgesetzte|老板|上司|领导|经理|主管
car: car|vehicle|auto|wagen|车|汽车|轿车|车子|座驾
diet: diet|ernährung|饮食|饮食习惯
birthday: birthday|birth date|date of birth|birthdate|geburtstag|geburtsdatum|生日|出生日期
doctor: doctor|gp|physician|family doctor|general practitioner|primary care doctor|primary care physician|arzt|
 ärztin|hausarzt|hausärztin|医生|家庭医生|主治医生
dentist: dentist|zahnarzt|zahnärztin|牙医
bank: bank|hausbank|银行|开户行
insurance: insurance|insurer|insurance company|health insurance|health insurer|insurance provider|
 health insurance provider|versicherung|krankenkasse|krankenversicherung|保险|保险公司
gym: gym|fitness studio|fitness center|fitness centre|fitnessstudio|健身房
landlord: landlord|landlady|vermieter|vermieterin|房东
rent: rent|monthly rent|miete|monatsmiete|房租|租金|月租
salary: salary|income|pay|annual salary|yearly salary|gehalt|einkommen|lohn|工资|薪水|薪资|收入|年薪|月薪
school: school|college|university|uni|schule|universität|hochschule|学校|大学
nationality: nationality|citizenship|staatsangehörigkeit|staatsbürgerschaft|国籍
name: name|full name|名字|姓名
surname: surname|last name|family name|nachname|姓
nickname: nickname|spitzname|昵称|外号|小名
username: username|user name|handle|login|account name|benutzername|nutzername|用户名|账号
password: password|passwort|kennwort|密码|口令
gate code: gate code|gate pin|entry code|access code|building code|türcode|torcode|zugangscode|门禁密码|
 门禁码|大门密码|门锁密码
wifi password: wifi password|wi-fi password|wlan-passwort|wlan passwort|wifi key|wi-fi key|wlan-schlüssel|
 wifi密码|无线密码|wi-fi密码
database: database|db|database engine|main database|primary database|datenbank|数据库
editor: editor|text editor|code editor|ide|编辑器
browser: browser|web browser|浏览器
code language: programming language|backend language|programmiersprache|编程语言
framework: framework|web framework|frontend framework|框架
cloud: cloud|cloud provider|hosting|hosting provider|hoster|host|cloud-anbieter|云服务|云服务商|云平台|云
ci: ci|ci system|ci tool|ci server|ci/cd|ci pipeline|build system|ci-system
os: os|operating system|betriebssystem|linux distribution|linux distro|distro|操作系统|系统
chat: chat|chat tool|chat app|messenger|messaging app|team chat|聊天工具|聊天软件|通讯工具
tracker: tracker|issue tracker|bug tracker|ticket system|project management tool|ticketsystem
notes: notes|note app|notes app|note-taking app|note taking app|note tool|notizen|notiz-app|notizapp|笔记软件|笔记工具
queue: queue|message queue|message broker|broker|消息队列
cache: cache|caching layer|cache server|缓存
package manager: package manager|paketmanager|包管理器
vcs: version control|version control system|版本控制
payment: payment provider|payment processor|payment gateway|zahlungsanbieter|支付渠道|支付平台
bundler: bundler|build tool|打包工具|构建工具
status: status|state|stand|zustand|状态|进度
deadline: deadline|due date|delivery date|abgabetermin|frist|截止日期|截止时间|期限|交付日期
version: version|release|版本|版本号
budget: budget|预算
port: port|端口|端口号
timeout: timeout|time-out|超时|超时时间
deploy command: deploy command|deployment command|deploy-befehl|部署命令|发布命令
phone model: phone model|smartphone|手机型号
laptop: laptop|notebook|work laptop|笔记本|笔记本电脑|电脑
provider: phone provider|mobile provider|carrier|mobile carrier|internet provider|isp|phone plan|
 mobilfunkanbieter|handyanbieter|internetanbieter|运营商
medication: medication|medicine|meds|medikament|medikamente|药|药物
shoe size: shoe size|schuhgröße|鞋码
marital status: marital status|relationship status|familienstand|婚姻状况|感情状况
"""


def _relations() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _SYNONYMS.replace("\n ", "").strip().splitlines():
        relation, _, nouns = line.partition(": ")
        found |= dict.fromkeys(nouns.split("|"), relation)
    return found


RELATIONS: Final = _relations()
"""The relation that a noun names, by the lower-case noun of any language."""

_NOT_SINGLE: Final = frozenset({"school", "medication", "code language", "framework", "status", "name"})
SINGLE: Final = frozenset(RELATIONS.values()) - _NOT_SINGLE
"""Relations with one value at a time, whose newest statement replaces the older ones without a word for a change."""

_SINGLE_HEADS_TEXT = """
    number code pin password passphrase key address size age height weight birthday anniversary deadline budget
    price cost fee rent salary wage version port command url link domain email branch limit threshold timeout
    interval retention frequency extension id username handle owner lead manager boss supervisor director ceo
    cto president mayor coach tutor therapist dentist doctor gp vet barber hairdresser mechanic accountant
    lawyer landlord bank gym provider insurer insurance carrier employer nationality citizenship colour color
    theme timezone zone mode default capacity quota percentage rate score rank weight temperature password
    hostname host region bucket model schema format license licence currency target goal maximum minimum size
    length width level tier allowance postcode zip seat gate room platform desk floor locker nummer passwort
    adresse größe preis gebühr miete gehalt frist version befehl grenze limit farbe termin raum zimmer schwelle
    intervall region zeitzone währung ziel
    号码 密码 地址 价格 费用 版本 端口 命令 上限 下限 阈值 间隔 截止日期
    负责人 颜色 尺码 房间 座位 时区 区域 目标 域名
    分支
"""
SINGLE_HEADS: Final = frozenset(_SINGLE_HEADS_TEXT.split())
"""Nouns at the end of a phrase, or phrases of Chinese, that have one value at a time."""

_MULTIPLE_TEXT = """
    language languages pet pets dog dogs cat cats hamster rabbit child children kid kids son sons daughter daughters
    brother brothers sister sisters sibling cousin uncle aunt nephew niece friend friends best-friend colleague
    colleagues coworker coworkers co-worker roommate flatmate neighbor neighbour neighbors neighbours teammate
    allergy allergies skill skills hobby hobbies interest interests instrument sport book books movie movies
    film films song songs show game games recipe trip idea plan thing problem issue point question reason answer
    favorite favourite client customer student teacher grandmother grandfather grandma grandpa team project
    projects meeting-note dream fear feeling day week weekend morning life family food dish stuff experience
    result way fact truth sprache sprachen haustier hund katze kind kinder sohn tochter bruder schwester freunde
    kollege kollegin allergie allergien hobby hobbys buch film
    语言 宠物 狗 猫 孩子 儿子 女儿 哥哥 弟弟 姐姐 妹妹 朋友 同事 过敏 爱好 兴趣 技能
    书 电影 歌 梦想 想法 问题 同学 邻居 家人
"""
MULTIPLE: Final = frozenset(_MULTIPLE_TEXT.split())
"""Nouns with several values: a statement about one says nothing against another."""

_TOOLS = """
database: mysql|postgresql|postgres|sqlite|mongodb|mongo|mariadb|oracle|sql server|mssql|dynamodb|cassandra|
 cockroachdb|couchdb|firestore|supabase|neo4j|clickhouse|snowflake|bigquery|influxdb|timescaledb|duckdb|
 planetscale|tidb|scylladb|db2
editor: vim|neovim|emacs|vs code|vscode|visual studio code|visual studio|sublime text|sublime|intellij|
 intellij idea|pycharm|webstorm|eclipse|atom|cursor|zed|helix|nano|notepad++|xcode|android studio|jetbrains|
 goland|rider|windsurf
browser: firefox|chrome|safari|edge|brave|opera|vivaldi|arc|chromium|tor browser|zen
framework: django|flask|fastapi|rails|ruby on rails|laravel|spring|spring boot|express|nestjs|react|vue|angular|
 svelte|next.js|nextjs|nuxt|sveltekit|remix|symfony|gin|fiber|actix|axum
code language: python|java|javascript|typescript|go|golang|rust|ruby|php|kotlin|swift|c#|scala|elixir|perl
cloud: aws|azure|gcp|google cloud|heroku|digitalocean|hetzner|linode|vercel|netlify|render|fly.io|railway|ovh|
 scaleway|cloudflare|alibaba cloud|aliyun|阿里云|腾讯云|华为云|amazon web services|ec2|lambda
ci: jenkins|github actions|gitlab ci|circleci|travis|travis ci|teamcity|buildkite|drone|azure pipelines|bamboo|
 woodpecker
os: ubuntu|debian|fedora|arch|arch linux|windows|windows 10|windows 11|macos|linux|nixos|mint|linux mint|centos|
 alpine|opensuse|pop!_os|manjaro|rocky linux|red hat|rhel
chat: slack|teams|microsoft teams|discord|mattermost|rocket.chat|zulip|telegram|whatsapp|signal|wechat|微信|钉钉|飞书|
 企业微信|qq|threema
tracker: jira|linear|trello|asana|github issues|redmine|youtrack|monday|clickup|basecamp|shortcut|notion boards|
 todoist|禅道|azure boards
notes: obsidian|notion|evernote|logseq|onenote|bear|apple notes|roam|roam research|joplin|google keep|印象笔记|
 有道云笔记|语雀
queue: rabbitmq|kafka|sqs|nats|activemq|pulsar|celery|zeromq|redis streams|rocketmq
cache: redis|memcached|valkey|varnish|dragonfly|keydb
package manager: npm|yarn|pnpm|bun|pip|poetry|uv|conda|pipenv|homebrew|cargo|maven|gradle
vcs: git|svn|subversion|mercurial|perforce|cvs
payment: stripe|paypal|adyen|braintree|square|mollie|klarna|支付宝|微信支付
bundler: webpack|vite|rollup|parcel|esbuild|turbopack|rspack
phone model: iphone|pixel|galaxy|samsung galaxy|oneplus|xperia|小米手机|fairphone|motorola|nothing phone
laptop: macbook|macbook air|macbook pro|thinkpad|xps|dell xps|surface|zenbook|framework laptop|elitebook|
 chromebook
provider: vodafone|verizon|at&t|t-mobile|telekom|o2|comcast|xfinity|sprint|orange|ee|中国移动|中国联通|中国电信
"""


def _tools() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _TOOLS.replace("\n ", "").strip().splitlines():
        kind, _, names = line.partition(": ")
        found |= dict.fromkeys(names.split("|"), kind)
    return found


TOOLS: Final = _tools()
"""The kind of tool that a name stands for, by lower-case name."""

_ALSO_WORDS_TEXT = """
    go rust swift spring express arc edge opera brave signal teams bear atom linear monday render square notion
    drone rider gin helix zen mint arch slack shortcut orange sprint ee cursor eclipse sublime remix rails bun
    poetry gradle oracle bamboo parcel cargo windows lambda heroku
"""
ALSO_WORDS: Final = frozenset(_ALSO_WORDS_TEXT.split())
"""Names of tools that are words too: they name a tool only with a capital letter."""
STATES: Final = (
    r"(?:done|finished|complete|completed|in progress|in review|in testing|open|closed|fixed|merged|blocked"
    r"|pending|approved|rejected|red|green|yellow"
    r"|shipped|released|deployed|cancelled|canceled|paid|unpaid|ready|paused|on hold|on track|failing|passing"
    r"|resolved|delayed|overdue|submitted"
    r"|enabled|disabled|offline|online)"
)
"""States of a task, one at a time."""
PROFESSIONS: Final = (
    r"(?:engineer|developer|programmer|teacher|nurse|doctor|lawyer|chef|cook|accountant|designer|manager"
    r"|consultant|analyst"
    r"|scientist|researcher|professor|lecturer|writer|journalist|editor|photographer|carpenter|plumber"
    r"|electrician|mechanic"
    r"|driver|pilot|waiter|waitress|barista|baker|butcher|farmer|gardener|architect|dentist|pharmacist|vet|veterinarian"
    r"|therapist|psychologist|firefighter|police officer|soldier|librarian|secretary|receptionist|salesperson|realtor"
    r"|translator|interpreter|musician|actor|actress|painter|welder|paramedic|midwife|surgeon|banker|broker|recruiter"
    r"|director|officer|admin|administrator|technician|tutor|coach|trainer|hairdresser|barber|tailor|cashier|clerk"
    r"|freelancer|contractor|intern|student|cto|ceo|cfo|team lead|tech lead|product owner|scrum master|social worker)"
)
DIETS: Final = (
    r"(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|keto|paleo|gluten-free|gluten free|omnivore|kosher|halal"
    r"|lactose-free|dairy-free|low-carb|low carb|carnivore)"
)
