# ruff: noqa: E501 - lists
"""Words of updates in English, Chinese, German, Spanish, French, Portuguese, Italian and Dutch: folded, in one table.

Words are beginnings, so that each stands for its inflections; a final `$` closes one. Chinese words stand anywhere.
"""

from typing import Final

TOPICS: Final = {
    "home": """live$ lives$ living$ lived$ reside residing relocat settl apartment flat$ my_place$ our_place$ a_place_in$ keys$ moved_to$ moved_in$ moved_into$ moved_out$ moved_from$ moved_back$ moved_away$ moved_house$ moved_here$ moving_to$ moving_in$ relocating$ home$ city$
        wohn umzug umgezogen gezogen ubersiedel zuhause hause$ vivo$ vive$ vivimos$ vivir$ vivia$ mude$ mudo$ mudamos$
        mudado$ mudanza piso$ domicilio independic residencia habit vis$ demenag emmenag appartement loge$ moro$ mora$
        moram$ morar$ morava$ mudei mudou mudar morando abito$ abita$ abitare$ trasferi casa$ woon verhui
        住 搬到 搬去 搬家 搬来 搬进 搬走 搬回 迁居 落户 定居 家在 城市 移居""",
    "address": """address$ mail$ adresse direccion endereco indirizzo adres$ street$ 地址 住址""",
    "job": """job$ jobs$ work$ works$ working$ occupation profession living$ employ quit$ resign my_notice$ hired$ career$ position$
        promoted$ retired$ laid$ unemployed$ beruf arbeit stelle$ kundig angestellt umgeschult trabaj empleo$ oficio$
        profesion puesto$ despid jubil travail bosse$ bosser$ bosses$ taffe demission metier$ emploi$ boulot$ embauch trabalh emprego$ profiss demit
        aposent lavor mestiere impiego werk$ werkt$ baan$ beroep
        工作 上班 职业 转行 跳槽 辞职 离职 入职 职位 单位 任职 退休 做什么的 公司""",
    "phone": """phone$ number$ mobile$ cell$ sim$ reach$ handy handynummer telefon nummer rufnummer telefono numero$
        movil$ celular$ telephone portable$ telefone telemovel telefoonnummer mobiel 手机 电话 号码 换号 """,
    "email": """email emails$ e-mail mail$ mailbox inbox correo$ courriel adresse$ posta$ 邮箱 邮件""",
    "age": """old$ age$ birthday$ turned$ years$ jahre$ alter$ alt$ geburtstag anos$ edad$ cumpli cumplean ans$
        anniversaire$ idade$ fez$ aniversario anni$ compleanno jaar$ oud$ verjaardag 岁 年龄 生日 多大""",
    "partner": """dating$ date$ married wedding$ marry girlfriend boyfriend husband wife$ partner fiance broke_up$ divorc
        single$ engaged$ relationship beziehung relacion$ relation$ relacionamento$ relazione$ relatie$ called_it_off$ 领证 seeing$ i_am_with$ been_with$ verheiratet geheiratet getrennt freundin$ zusammen$ ledig$ novia$
        novio$ casad casarse case$ caso$ pareja$ espos soltero soltera separ rompi copain$ copine$ celibataire mari$
        marie fiance amoureu namor casei$ casou$ casada$ casado$ terminei$ solteir noivo noiva fidanzat sposat
        getrouwd vriendin 女朋友 男朋友 女友 男友 结婚 分手 离婚 对象 单身 老婆 老公 交往 在一起 订婚""",
    "car": """car$ cars$ drive$ drives$ driving$ drove$ vehicle hatchback$ pickup$ sedan$ suv$ van$ truck$ motorbike$
        auto$ wagen$ fahre$ fahrt$ gefahren$ kombi$ elektroauto coche$ furgoneta caravana camper$ conduc conduj conduzco$ moto$ vehiculo carro$ dirijo$
        voiture roule conduis macchina guido$ rijd rijdt$ 车 开的""",
    "commute": """commut bike$ bicycle$ cycle$ cycling$ bus$ train$ subway$ tram$ metro$ pendel fahrrad rad$ 骑 地铁 公交 上班""",
    "diet": """diet$ vegan vegetarian pescatarian eat$ eats$ eating$ ate$ meat$ omnivore keto$ carnivore ernahr esse$
        isst$ vegetar fleisch dieta$ como$ comer$ carne$ regime$ mange viande vegetal mangio dieet eet$ 吃素 吃肉 素食 荤 饮食""",
    "dentist": """dentist zahnarzt dentista dentiste tandarts 牙医""",
    "doctor": """doctor gp$ physician arzt$ arztin hausarzt$ hausarztin medic medecin$ docteur docteure huisarts
        医生 大夫""",
    "boss": """boss manager supervisor report_to$ reports_to$ chef$ chefin vorgesetzt leitet$ projektleit teamleit abteilungsleit leads$ team_lead$ in_charge$ head_of$ jefe$ jefa$ patron$ patronne superieur
        responsable chefe$ capo$ baas$ leidinggevende 老板 上司 领导 主管 经理""",
    "rent": """rent$ rents$ we_pay$ miete mieterhohung alquiler$ loyer$ aluguel renda$ affitto$ huur$ 房租 月租 租金 涨租 降租""",
    "landlord": """landlord landlady vermieter casero$ casera$ proprietaire senhorio locador huisbaas 房东""",
    "salary": """salary earn$ earns$ wage gehalt verdien lohn$ sueldo gano$ salario salaire gagne salar stipendio
        工资 薪 收入 赚 挣""",
    "bank": """bank$ banks$ banking$ account$ accounts$ konto$ sparkasse banco$ cuenta$ banque compte$ conta$ banca$
        银行 开户""",
    "insurance": """insur versicher krankenkasse seguro$ asegur assurance mutuelle assicura verzeker 保险""",
    "gym": """gym$ gyms$ workout work$ fitness fitnessstudio gimnasio salle$ academia$ ginasio palestra sportschool 健身""",
    "school": """school$ schools$ attend college$ university$ degree$ fach$ studienfach study$ studies$ studying$ major$ course$ uni$ studium
        studier schule$ estudi carrera$ universidad facultad colegio$ etudi ecole$ fac$ lycee estud curso$ faculdade
        escola$ 上学 读书 学校 专业 念 大学 转学""",
    "weight": """weigh weight$ kilos$ kilo$ kg$ pounds$ lbs$ scales$ wiege$ gewicht$ abgenommen zugenommen peso$ pesa$
        adelgac engord poids$ pese$ 体重 公斤 斤 瘦 胖""",
    "provider": """provider$ isp$ internet$ carrier$ broadband$ anbieter vertrag proveedor operadora compania fournisseur
        operateur provedor operadora 运营商 宽带""",
    "plan": """plan$ plans$ tier$ subscri tarif tarifa abonnement forfait plano$ assinou assinei abbonamento 套餐 会员""",
    "password": """password$ passphrase$ pin$ code$ passwort kennwort contrasena clave$ senha$ codigo mot_de_passe$ 密码
        口令""",
    "database": """database$ databases$ datenbank base_de_dat bd$ postgres postgresql mysql mariadb sqlite mongodb oracle
        donnees$ dados$ 数据库""",
    "language": """language$ written$ rewrit rewrote$ python$ rust$ java$ kotlin$ typescript$ geschrieben lenguaje
        langage linguagem 语言 重写""",
    "status": """status state$ stand$ ticket$ estado$ estat etat$ merged$ done$ fixed$ closed$ shipped$ resolved$ blocked$
        finished$ unblocked$ abgeschlossen erledigt fertig 状态 修好 完成 搞定 进度""",
    "schedule": """when$ time$ day$ wann$ uhrzeit termin$ cuando$ hora$ quand$ heure$ quando$ scheduled due$ date$
        什么时候 几点 时间 哪天 周几 星期几 何时 几号 日期""",
    "wake": """wake$ wakes$ woke$ get_up$ gets_up$ getting_up$ alarm$ aufsteh stehe$ aufwach levant despert leve$ reveil
        acord acordo$ 起床 闹钟""",
    "medication": """pill pills$ dose$ medic medik tablet mg$ pastilla dosis comprim remedio medicament 药 剂量""",
    "drink": """coffee$ tea$ drink$ drinks$ drank$ kaffee$ tee$ trink cafe$ bebo$ boisson bois$ 喝 咖啡 茶""",
    "name": """name$ named$ called$ surname renamed$ heisse$ heisst$ heißt$ nachname llamo$ llama$ nombre$ apellido
        appelle nom$ chamo$ chama$ nome$ 叫 名字 姓 改名""",
    "hair": """hair$ haircut$ dyed$ dye$ bald$ ponytail$ gefarbt 染 haare$ pelo$ cheveux cabelo$ 头发""",
    "tool": """use$ uses$ using$ tool$ app$ nutz verwend benutz uso$ usa$ usamos$ utiliz utilis outil$ herramienta
        ferramenta uso$ usamos$ gebruik 用 使用 工具""",
    "team": """team$ department$ abteilung equipo$ equipe$ departamento 部门 团队 小组""",
    "color": """color$ colour$ colors$ painted$ paint$ farbe couleur cor$ 颜色 red$ blue$ green$ yellow$ orange$ purple$ pink$ black$ white$
        grey$ gray$ brown$ teal$ navy$ turquoise$ beige$ rot$ rote$ blau grun gelb lila$ rosa$ schwarz weiss grau braun turkis rojo$ roja$ azul$
        verde$ amarill morado$ negro$ negra$ blanco$ blanca$ gris$ marron$ rouge$ bleu vert$ verte$ jaune$ noir$ noire$ blanc$ blanche$ vermelh
        amarel preto$ preta$ branco$ branca$ cinza$ roxo$ 红色 蓝色 绿色 黄色 橙色 紫色 粉色 黑色 白色 灰色 棕色 深蓝 深绿""",
    "pet": """cat$ dog$ pet$ hund$ katze$ perro$ gato$ chien$ chat$ cachorro$ 猫 狗""",
    "instrument": """instrument 乐器""",
    "sport": """sport$ sports$ exercise$ exercising$ workout training$ trains$ deporte esporte entren 运动 锻炼""",
    "reading": """reading$ read$ reads$ book$ books$ novel$ lese$ liest$ buch$ leyendo$ leo$ libro$ lecture$ livre$ lendo$ livro$ leggo$ libro$ 在读 读完 看书""",
    "watching": """watching$ watch$ series$ show$ season$ episode$ serie$ schaue$ staffel$ viendo$ temporada$ regarde$ saison$ assistindo$ assisto$ 追剧 在看""",
    "sleep": """sleep$ sleeps$ slept$ sleeping$ bedtime$ nap$ schlaf schlaeft duermo$ dormir$ dors$ durmo$ dormo$ slaap 睡""",
    "smoke": """smok non-smoker cigar cigarette nicotine$ vape$ vaping$ rauch zigarette fumo$ fumar$ fumador cigarrillo$ tabaco$ fume$ fumeur cigarro$ sigarett rook$ 抽烟 吸烟 戒烟 包烟 香烟""",
    "alcohol": """alcohol beer$ wine$ sober$ booze$ drunk$ alkohol bier$ wein$ nuchtern$ trocken$ cerveza$ vino$ alcool biere$ vin$ sobre$ cerveja$ vinho$ sobrio$ birra$ wijn$ 喝酒 戒酒 白酒 啤酒 红酒""",
    "shoes": """shoe shoes$ sneakers$ trainers$ boots$ schuh zapato zapatilla chaussure pointure$ chausse$ sapato calco$ tenis$ scarp schoen 鞋""",
    "sight": """glasses$ lenses$ contacts$ prescription$ optician eyesight$ brille dioptrien kontaktlinse gafas$ lentes$ lentillas$ lunettes$ lentilles$ oculos$ grau$ occhiali$ bril$ 眼镜 近视 度数""",
    "teacher": """teacher teaches$ taught$ tutor coach$ instructor lesson lessons$ lehrer lehrerin unterricht trainer$ trainerin profesor profesora profe$ maestro$ maestra$ clases$ prof$ professeur
        entraineur cours$ professor professora aula$ aulas$ tecnico$ insegnante$ allenator leraar 老师 教练 班主任 家教""",
    "cleaner": """cleaner cleans$ cleaning$ housekeeper putzt$ putzhilfe reinigung limpia$ limpieza$ menage$ faxineira$ diarista$ limpa$ pulizie$ 保洁 阿姨 钟点工""",
    "childcare": """nanny$ nannies$ babysit childminder nursery$ kindergarten daycare$ kita$ tagesmutter guarderia$ ninera$ nounou$ creche$ assmat$ baba$ 保姆 幼儿园 托班""",
    "energy": """electricity$ power_company$ energy$ gas$ strom stromanbieter heiz heizung luz$ electricidad$ electricite$ chauff chauffage energia$ heating$ heat$ boiler 电费 供暖 暖气""",
    "parking": """park$ parks$ parking$ garage$ bay$ parkplatz parke$ stellplatz tiefgarage aparco$ aparcamiento garaje$ gare$ stationn estaciono$ vaga$ 停车 车位 车库 停在""",
    "seat": """desk$ seat$ sit$ sits$ sitting$ floor$ office$ office_is$ buro$ schreibtisch sitze$ stock$ sitzplatz oficina$ asiento$ planta$ piso$ bureau$ etage$ siege$ escritorio$ assento$ andar$ mesa$ 工位 座位 楼层 办公室""",
    "flatmate": """flatmate flatmates$ roommate roommates$ housemate share$ mitbewohner mitbewohnerin wg$ companero_de_piso$ companeros_de_piso$ colocataire coloc$ colega_de_quarto$ 室友 合租""",
    "travel": """flight$ flights$ fly$ flying$ holiday$ holidays$ vacation trip$ travel$ journey$ flug$ urlaub reise$ reiseziel urlaubsziel vuelo$ vacaciones$ viaje$ vol$ vacances$ voyage$ voo$ ferias$ viagem$ volo$ vacanza$ vlucht$ vakantie$
        航班 飞机 旅行 旅游 度假""",
    "wedding": """wedding$ venue$ reception$ hochzeit boda$ mariage$ noces$ casamento$ matrimonio$ bruiloft$ 婚礼 婚期""",
    "rehearsal": """rehears rehearsal practice$ choir$ band$ orchestra$ probe$ proben$ chor$ chorprobe ensayo$ ensayamos$ coro$ repetition$ chorale$ ensaio$ ensaiamos$ coral$ prove$ repetitie$ 排练 合唱""",
    "shift": """shift$ shifts$ nights$ days_shift$ schicht nachtschicht fruhschicht spatschicht turno$ equipe_de_nuit$ poste_de_nuit$ plantao$ dienst$ 夜班 白班 早班 晚班 班次""",
    "level": """level$ grade$ belt$ rank$ year$ class$ klasse$ niveau stufe$ lehrjahr semester nivel$ curso$ grado$ classe$ grau$ ano$ serie$ livello$ grado$ 水平 级别 年级 等级 段位""",
    "licence": """licence$ license$ driving_test$ fuhrerschein carnet_de_conducir$ carnet$ permis$ carteira$ habilitacao$ cnh$ patente$ rijbewijs$ 驾照 驾驶证""",
    "team size": """people$ members$ headcount$ staff$ employees$ leute$ mitarbeiter personen$ personas$ empleados$ personnes$ employes$ pessoas$ funcionarios$ persone$ dipendenti$ mensen$ 个人 人数""",
    "hosting": """hosting$ hosted$ hosts$ host$ hoster$ server$ servers$ deployed$ gehostet alojad alojamiento heberg hospedad hospedagem cloud$ 部署 服务器 托管""",
    "backup": """backup backups$ sicherung respaldo$ copia_de_seguridad$ copias_de_seguridad$ sauvegarde 备份""",
    "monitoring": """monitoring$ monitor$ alerting$ error_tracking$ error_tracker$ logs$ logging$ uberwachung monitoreo$ monitorizacion$ surveillance$ monitoramento$ 监控 日志""",
    "network": """wifi wi-fi wlan$ router$ modem$ network$ netzwerk$ red$ reseau$ rede$ rete$ netwerk$ 网络 路由器 无线""",
    "delivery": """deliver delivery$ parcel$ package$ shipping$ lieferung paket$ zustell entrega$ paquete$ livraison$ colis$ encomenda$ 外卖 快递 收货""",
    "payment": """payment$ pays$ pay$ paying$ card$ cash$ direct_debit$ invoice$ zahle$ zahlung$ lastschrift pago$ tarjeta$ efectivo$ paiement$ carte$ prelevement$ pagamento$ cartao$ boleto$ betaling$ 付款 支付""",
    "deadline": """deadline due$ submission$ abgabe frist$ entrega$ plazo$ echeance$ rendu$ prazo$ scadenza$ 截止 期限 交稿""",
    "theme": """theme$ dark_mode$ light_mode$ wallpaper$ layout$ design$ modus$ hintergrund tema$ fondo$ mode_sombre$ fond_d'ecran$ modo_escuro$ 主题 壁纸 模式""",
    "form of address": """address_me$ address_the$ pronouns$ siezen$ duzen$ anrede$ tutear$ tuteo$ tutoy vouvoy chamar_de$ 称呼""",
    "handset": """phone$ handset$ iphone pixel$ galaxy$ fairphone$ samsung$ oneplus$ xiaomi$ handy$ telefon$ smartphone telefono$ movil$ celular$ telephone$ portable$ 手机 小米 华为 苹果""",
}
"""The words of a topic, by its relation. Some are of questions for it."""
INSTANCES: Final = {
    "language": """english german french spanish italian portuguese polish welsh russian chinese mandarin cantonese japanese korean arabic turkish dutch swedish
        norwegian danish greek hindi ukrainian englisch deutsch franzosisch spanisch italienisch polnisch russisch turkisch ingles$ aleman$
        frances$ espanol$ italiano$ portugues$ ruso$ chino$ anglais$ allemand$ espagnol$ italien$ russe$ chinois$ alemao$ espanhol$
        英语 日语 法语 德语 韩语 俄语 西班牙语 粤语 普通话""",
    "job": """engineer developer programmer nurse lawyer paralegal barista waiter waitress$ baker$ butcher$ farmer$ gardener plumber electrician carpenter
        mechanic journalist architect pharmacist librarian accountant$ cashier apprentice apprenticed$ intern$ internship freelanc consultant$
        paramedic midwife translator firefighter hairdresser barber$ technician dispatcher compliance_officer civil_servant team_lead
        pfleger krankenpfleger erzieher kellner verkaufer verkauferin lehrling lehre$ ausbildung tischler mechatroniker buchhandler
        sachbearbeiter teamleiter ingenieur entwickler anwalt anwaltin elektriker gartner backer$ friseur
        camarer cajer enfermer ingenier abogad electricista cociner peluquer recepcionista becari dependient
        serveur serveuse infirm ingenieur avocat boulanger cuisini menuisier apprenti comptable vendeu coiffeu stagiaire fleuriste
        garcom enfermeir engenheir advogad padeir cozinheir eletricista estagi cabeleireir infermier ingegner avvocat camerier cuoco$
        编辑 护士 工程师 律师 会计 厨师 司机 产品经理 程序员 设计师 公务员 运营 销售 店长""",
    "instrument": """guitar$ guitars$ piano cello violin$ bass$ drums$ drummer$ flute$ saxophone$ sax$ trumpet$ ukulele$ accordion$ clarinet$ harp$
        banjo$ gitarre geige$ klavier schlagzeug flote$ trompete$ guitarra bateria$ bajo$ flauta trompeta$ guitare violon batterie
        violino$ violao$ chitarra gitaar viool 吉他 钢琴 小提琴 大提琴 贝斯 打鼓 鼓手""",
    "sport": """tennis football soccer$ rugby$ basketball volleyball hockey$ badminton swim swims$ swimming$ yoga pilates$ judo$ karate boxing$ climb$
        climbing$ boulder jog jogging$ run$ running$ crossfit$ rowing$ fencing$ dance$ dancing$ zumba$ squash$ golf$ cricket$ netball$
        skiing$ surf fussball handball schwimm klettern laufen$ jogge turnen$ rudern$ tanzen$ futbol baloncesto natacion nado$ correr$
        escalada$ boxeo$ bailar$ natation course_a_pied$ danse$ escalade$ foot$ futebol natacao corrida$ corro$ danca$ calcio$ nuoto$
        corsa$ voetbal zwemmen$ 跑步 晨跑 游泳 瑜伽 足球 篮球 羽毛球 乒乓球 网球 跳舞 爬山""",
}
"""Names of things of a topic. A question that has one asks for that very thing."""

CHANGES: Final = """
    changed change$ changes$ switch switched$ moved$ move$ replac swapp swap$ traded$ upgrad downgrad migrat relocat quit$
    left$ resign retired$ raised$ raise$ bumped$ lowered$ increas reduced$ doubled$ tripled$ halved$ cut$ extended$
    shorten pushed$ postpon resched delayed$ slipped$ slid$ shifted$ brought$ renamed$ reset$ rotated$ became$ becom
    promoted$ longer$ anymore$ instead$ gave$ dropped$ ditched$ sold$ bought$ cancel broke$ split$ divorced$ married$
    merged$ flipped$ enabled$ disabled$ rewrote$ rewrit rose$ fell$ grew$ scaled$ signed$ converted$ transferr transition
    handed$ shut$ flooded$ collapsed$ died$ adjusted$ adjust voted$ redrawn$ reshuffl rearranged$ install chopped$ hung$ stepped$
    taken_over$ took_over$ from_now$ from_today$ ab_sofort$ ab_jetzt$ my_notice$ put_into$ redone$ measured$ stuck$ made_me$ landed$ called_me$ calls_me$ found_a$ picked$ chose$ chosen$
    went_up went_down went_back went_vegan went_vegetarian went_from went_with hit$ finished$ stopped$ ended$ expired$ i_got$ we_got$ user_got$ got_a_new$ got_the$ got_an$ axed$ got_my$ got_back$ got_up$ got_pushed$ got_moved$ got_closed$ got_changed$ got_swapped$ got_married$ got_divorced$ got_promoted$ got_hired$ got_rid$ got_cut$ just_got$ finally_got$ joined$ started$ opened$ closed$ adopted$ rolled$ settled$ landed$
    jumped$ painted$ repainted$ upped$ turned$ off$ over$ hired$ took$ trimmed$ dyed$ down_to$ up_to$ finally$ passed$ redid$ overhaul
    gewechselt wechsel gestrichen lackiert hochgesetzt heraufgesetzt herabgesetzt hochgestuft umgezogen gezogen umzug gekundigt verschoben verschob verlegt geandert andert umgestiegen umgestellt
    ersetzt statt$ erhoh gesenkt gestiegen verkauft abgegeben getrennt geheiratet befordert abgeschlossen umgeschult
    umbenannt ausgetauscht getauscht zugemacht gewonnen angefangen gekauft mehr$ sondern$ ubernommen zuruckgesetzt gelandet untergekommen eingefuhrt bestanden ausgezogen eingezogen vorgezogen
    cambi mude$ mudo$ mudamos$ mudado$ deje$ dejo$ dejado$ dejamos$ migr paso$ pase$ pasamos$ pasado$ subi$ subio$ baje$
    bajo$ bajaron$ vendi vendio$ compro$ compre$ reemplaz sustitu aplaz adelant pospu retras termine$ termino$ renunci
    empece$ empezo$ ascend independic traslad rompi casaron$ caso$ adopt jubil despid aument actualiz quitaron$ trasladar mudaron$ celebra$ toca$ movio$ movido$
    change$ changee$ changer$ chang demenag quitt$ quitte remplac abandon augment baiss repouss avanc report decal vendu$
    achete marie$ mariee$ separe divorc devenu devien ferme$ passe$ passee$ passes$ opte profit$ plutot$ lieu$ arrete muter$ mute$ rendu$ installe craque deplace
    mudei mudou mudamos$ mudaram$ troc troquei sai$ saiu$ deixei$ deixou$ passou$ passei$ passamos$ migramos$ substitui
    subiu$ baixou$ adiad adiou$ remarc vendeu$ comprei$ comprou$ terminei$ terminou$ separei$ casou$ casei$ virei$ virou$
    promovid assin fez$ atualiz comecei$ alterad larguei$ largou$ aposentou$ expulsou$
    trasferit lasciat sostituit spostat rinviat venduto$ comprato$ diventat passat
    verhuisd gewisseld veranderd overgestapt vervangen verzet verschoven verhoogd verkocht gekocht geworden
    换 改 搬到 搬去 搬家 搬来 搬进 搬走 搬回 搬出 搬离 搬新 搬入 搬过 搬了家 迁 跳槽 辞 离职 转 涨 降 调 升 推迟 提前 延 不再 取消 卖 分手 离婚 结婚 变 戒 开始 更新 替换 挪 刚过 修好 完成
 刷成 漆成 染成 加到 减到 瘦到 胖到 长到 蹿到 重写 搞定 毕业 买了 定在 不干 交给 转到 停了 调走 成了 走了 休产假
    modified$ push$ slips$ moves$ extend$ prolong puts_up$ put_up$ put_the$ put_me$ put_us$ reassign assigned_me$ assigned_us$ demot fired$ sacked$ redundant$
    laid_off$ let_go$ bust$ rebook rebrand reorgani restructur redecorat refurbish tighten loosened$ chuck binned$ scrapped$ junked$
    tossed$ shaved$ cropped$ leased$ exported$ pulled_the_plug$ good_riddance$ all_in_on$ taken_on$ took_on$ elected$ appointed$
    succeeded$ stepping_down$ graduat qualified$ expanded$ shrank$ shrunk$ climbed$ soared$ slashed$ hiked$ relabel retitled$ reconfigur
    decommission deprecat ported$ rehomed$ rehous evict kicked_out$ called_it_off$ called_off$ broken_up$
    eloped$ hitched$ gave_birth$ was_born$ prescribed$ weaned$ came_off$ first_week$ first_day$ day_one$ over_to$ onto$ on_to$ fell_apart$
    packed_in$ jacked_in$ phased_out$ caved$ melted$ stolen$ wrecked$ totalled$ totaled$ crashed$ unblock fitted$ rearrang
    umge abgeschafft abgemeldet abgesetzt abgewohn abgelost abgebrochen abgestimmt ausgewechselt aufgestockt aufgegeben aufgehort
    aufgestiegen aufgerustet hingeschmissen dichtgemacht zugelegt angeschafft eingestiegen ubergeben$ nachfolg abgetreten
    zuruckgetreten gewahlt ernannt versetzt$ entlassen$ gefeuert verlangert verkurzt vorverlegt reduziert halbiert verdoppelt angehoben
    gekurzt erweitert verkleinert vergrossert aktualisiert migriert portiert umstellung modernisiert saniert gefarbt abgeschnitten
    rasiert geschieden scheidung verlobt rausgeworfen rausgeflogen raus$ gestorben eingeschlafert verstorben geboren pensioniert
    erster_tag$ erste_woche$ fristverlangerung mieterhohung gehaltserhohung ausgeschieden eingeschrieben$ eroffnet kaputt$ ausgemustert
    dazugekommen neu_verhandelt$ geschafft$
    modific pasaron$ pusieron$ puse$ dimit despidieron$ echaron$ contrate$ contrato_a$ contratamos$ fiche$ nombraron$ eligieron$ sustituy cerro$ cerraron$ abri$
    reubic apagamos$ redujo$ redujeron$ recort duplic ampliaron$ acort prorrog pinte$ pinto$ pintamos$ tenido$ corte$ rape$ murio$ fallec
    gradu aprobe$ saque$ casamos$ comprometi estreno$ estrenamos$ primer_dia$ primera_semana$ volvi_a$ me_quedan$ nos_quedan$ quedan$
    modifi licenci viree$ vire$ promue$ promu$ nommee$ nomme$ elue$ elu$ repris$ passer_en$ vient_de$ viens_de$ venons_de$ demission ouvert$ allong raccourci
    prolong reduit$ repeint teint$ rase$ decede diplome$ diplomee$ pacse emmenag bascul rebaptis renomm desabonn resili souscri
    premier_jour$ premiere_semaine$ du_coup$ reste_plus$
    adiaram$ antecip transferi contratei$ contratamos$ demitiram$ nomea eleito$ eleita$ assumiu$ fechou$ fecharam$ abriu$ reduziu$
    reduziram$ aumentou$ aumentaram$ dobrou$ prorrog encurt pintei$ pintamos$ tingi$ cortei$ raspei$ morreu$ faleceu$ formei$ formou$
    passaram$ terminamos$ casamos$ noivei$ tirei$ botei$ coloquei$ colocaram$ cancelei$ primeiro_dia$ primeira_semana$ acabou$ acabei$
    desligamos$ desliguei$ de_vez$
    cambiato$ cambiata$ spostat rimandat promoss licenzi assunto$ assunta$ nominat eletto$ eletta$ chiuso$ chiusa$ aperto$ ridott aumentat
    raddopp dipinto$ tagliat laureat separat divorziat traslocat smesso$ iniziato$ cominciat
    verplaatst uitgesteld vervroegd benoemd ontslagen aangenomen opgevolgd gesloten verlaagd verdubbeld geverfd geknipt overleden
    afgestudeerd gescheiden gestopt begonnen verruild ingeruild
    卸 退了 退租 退掉 报废 提了 提车 装了 考上 考到 领证 报到 接手 接任 接管 上任 换人 退休 退队 退群 加盟 续了 移到 放到 搬完 搬好 剪了 剪成 剪短 染了 剃
    出生 生了 去世 过世 过了 拿到 拿证 合并 拆了 拆掉 关门 倒闭 停用 下线 弃用 淘汰 领养 收养 送人 送走 丢了 坏了 摔坏 被偷 瘦了 胖了 一称 加量 减量 停药
    往后 即日起 起改 第一天 第一周 敲定 来接 入手
    変 引っ越 引越 転職 移行 移り 切り替 乗り換
"""
"""Words that say that something changed."""
ENDS: Final = """
    quit$ left$ resign sold$ traded$ dropped$ ditched$ cancel broke$ split$ replac swapp swap$ gave_up$ given_up$ gone_off$ stopped$
    retired$ no_longer$ anymore$ any_longer$ instead$ rather_than$ off$ gone$ dead$ closed$ divorced$ used_to$ ended$
    gekundigt nicht_mehr$ kein_mehr statt$ anstatt$ verkauft abgegeben getrennt ersetzt streng$ sondern$
    deje$ dejo$ dejado$ ya_no$ en_vez$ en_lugar$ vendi vendio$ rompi termine$ termino$ reemplaz sustitu
    quitte$ plus$ au_lieu$ abandon vendu$ remplac separe divorc rompu$ ferme$
    sai$ saiu$ deixei$ deixou$ em_vez$ vendi$ vendeu$ terminei$ terminou$ substitui troc troquei
    lasciat invece$ venduto$ sostituit niet_meer$ in_plaats$ verkocht vervangen
    不再 卖 分手 离婚 辞 离职 离开 戒 取消 从 不用 不在 代替 替换 毕业
"""
"""Words that say that something ended."""
NOW: Final = """
    now$ new$ nowadays$ days$ currently$ recently$ lately$ since$ turns$ actually$ again$ update$ correction$ just$
    onwards$ effective$ starting$ latest$ today$ from$ as_of$ this_week$ this_month$ already$ have_been$ for_good$ these_nights$ official$ officially$ finally$ final$ update:
    jetzt$ nun$ inzwischen$ mittlerweile$ seit$ seitdem$ neuerdings$ wieder$ ab$ neu$ neue$ neuer$ neues$ neuen$ aktuell$
    ahora$ desde$ recien$ actualmente$ ultimamente$ nuevo$ nueva$ hoy$ acab
    maintenant$ desormais$ depuis$ enfin$ recemment$ actuellement$ dorenavant$ nouveau$ nouvelle$ nouvel$ present$ mois-ci$
    agora$ hoje$ finalmente$ atualmente$ partir$ novo$ nova$ recentemente$
    adesso$ ora$ ormai$ nuovo$ nuova$ nu$ inmiddels$ sinds$ tegenwoordig$ vanaf$ nieuwe$
    现在 目前 如今 最近 已经 已 以后 新 又 了。 了， 了！
"""
"""Words that say that something is so now."""
DOUBTS: Final = """
    still$ another$ ran_out_of$ ran_out_of$ ist_alle$ sind_alle$ test_drove$ test_drive$ test-drove$ viewed$ besichtigt probegefahren 试驾 看房 又买 a_second$ einen_zweiten$ eine_zweite$ un_segundo$ una_segunda$ un_deuxieme$ une_deuxieme$ um_segundo$ uma_segunda$ 第二个 第二只 第二台 第二辆
    getraumt$ traumte$ sonhei$ 梦见 梦到 besides$ both$ additionally$ want$ wants$ hope$ hoping$ wish$ i_will$ next_year$ next_month$
    thinking_of$ considering$ might$ will_move$ would$ if$ unless$ planning$ perhaps$ almost$ nearly$ imagine$
    tempted$ dream$ dreamt$ dreaming$ pretend$ supposed$ suppose$  used_to$ back_in$ back_then$ years_ago$
    when_i_was$ as_a_child$ as_a_kid$ growing_up$ at_twenty$ gone_are$ could_have$ rumor$ rumour$ someday$ eventually$
    applied$ interview$ job_offer$ tried_to$ nothing_changed$ week_only$ only_this_week$ this_week_only$ by_the_time$ aiming$ gossip just_this$ for_this_week$ almost$ raconte$ il_parait$ dizem$ dicen$ angeblich$ aushilfsweise$ nur_diese  let's_play$ game$ campaign$ novel$ story$ haha lol$ kidding$ jk$ says$ said$
    told$ wrote$ reads$ basically$ practically$  asked$ wonder$ maybe$ tomorrow_i_might$ remember$
    draft$ draft_of$ entwurf$ brouillon$ borrador$ rascunho$ bozza$ 草稿 草案 turned_down$ declined$ refused$ turned_it_down$ talked_out_of$ abgelehnt rechace$ rechazo$ refuse$ j'ai_refuse$ recusei$ recusou$ 拒绝 婉拒 没答应 又养 又入 又抱 又领 又添
    noch$ auch$ weiterhin$ ware$ hatte$  wurden_wir$ konnte$ mochte$ wollen$ wollte$ falls$ wenn$ angenommen$ damals$ fruher$
    beinahe$ fast$ vielleicht$ uberlege$ praktisch$ plane$ hoffe$ zusatzlich$ ausserdem$
    tambien$ sigo$ sigue$ todavia$ aun$ quiero$ quisiera$ gustaria$ ojala$ quiza$ quizas$ tal_vez$ casi$ imagin pienso$
    planeo$ voy_a$ antes$ cuando_era$ hace_anos$ de_nino$ solia$ espero$ dijo$ podria$ proximo_ano$ que_viene$ nunca$
    aussi$ toujours$ encore$ veux$ voudrais$ aimerais$ aurais$ peut-etre$ presque$ failli$ compte$ prochain$ prochaine$
    autrefois$ quand_j'etais$ reve$ envisage$ jamais$ espere$ pense$ avant$ plus_tard$
    tambem$ ainda$ quero$ queria$ gostaria$ talvez$ quase$ pretendo$ tomara$ quando_era$ quando_eu_era$ penso$ vou$ espero$
    nunca$ costumava$ kkk$ imagine$
    anche$ ancora$ vorrei$ voglio$ forse$ spero$ quasi$ ook$ nog$ misschien$ wil$ zou$  bijna$ vroeger$
    也 还是 仍 想 打算 计划 考虑 如果 要是 假如 差点 以前 小时候 可能 也许 听说 据说 希望 当年 那会儿 哈哈 准备 小说 扮演
"""
"""Words of a text that replaces nothing: it doubts, wishes, plans, plays, tells of the past, or adds a value."""
TEMPORARY: Final = (
    r"\b(?:(?:only|just) (?:today|for (?:today|tomorrow|tonight|one|this|next))|nur (?:fur )?(?:morgen|diese)|solo por|juste pour|so por|early today|late today|this time|dieses mal|diesmal|esta vez|cette fois|desta vez|for today|temporarily|for now|vorubergehend|nur heute|furs erste|temporalmente|por ahora"
    r"|provisoirement|temporairement|temporariamente|por enquanto)\b|\b(?:one|a|single) test run|reverted (?:right|it|that|again)|wieder (?:da|zuruck)\b|临时|暂时|特殊|照旧|照常|这一次|就这次|这两天"
)
"""Words that say that something holds for a while, and not for good."""
NEGATIONS: Final = (
    r"\b(?:did|do|does|was|were|has|have|is|are|am|will|would|can)(?: not|n't)\b|\b(?:won't|can't|never)\b"
    r"|\bnicht\b|\bne\b|\bn'|\bnao\b|\bnon\b|\bniet\b|没|并未|不会|不是|不在"
)
"""Words that deny."""
ENDED: Final = (
    r"\b(?:any ?more|any longer|no longer|no more|instead|but|believe|mehr|sondern|ya no|sino|plus|mais|mas|piu|ma"
    r"|meer|maar)\b|不再|而是|[^,.;]*, not\b"
)
"""Words that make a denial the end of a value, or that name the new one."""
OTHERS: Final = """
    sister brother mother father mom$ moms$ mum$ mums$ mama$ papa$ dad$ dads$ parent my_son$ our_son$ user's_son$ my_sons$ daughter uncle aunt cousin nephew niece
    grandma grandpa grandmother grandfather grandson granddaughter husband wife$ girlfriend boyfriend partner$ friend$ friends$
    roommate flatmate colleague coworker neighbor neighbour in-law brother-in-law sister-in-law kid$ kids$ child$ children$
    cat$ dog$ baby$ mate$ mates$ buddy$ pal$ nebenan$ kumpel al_lado$ d'a_cote$ 隔壁 accountant$ client$ customer$ teammate$
    schwester bruder mutter vater eltern sohn tochter onkel tante$ cousine$ neffe$ nichte oma$ opa$ schwager schwagerin
    freund$ freundin$ mein_mann$ meine_frau$ meiner_frau$ meines_mannes$ kollege kollegin nachbar kind$ kinder$ mitbewohner hund$ katze$
    hermano hermana madre$ padre$ padres$ hijo hija tio$ tia$ primo$ prima$ abuelo abuela amigo amiga marido esposa novio$
    novia$ vecino vecina companer cunad
    soeur$ sœur$ frere mere$ pere$ parents$ fils$ fille$ oncle$ cousin$ ami$ amie$ collegue mari$ femme$ copain$ copine$ voisin
    irma$ irmao$ mae$ pai$ pais$ filho filha avo$ esposo marido$ namorad vizinh colega
    sorella fratello figlio figlia moglie$ zus$ broer$ moeder$ vader$ zoon$ dochter$ vriend$ vriendin$
    姐 妹 哥 弟 妈 爸 儿子 女儿 老公 老婆 爱人 丈夫 妻子 朋友 同事 邻居 表 叔 姨 舅 爷爷 奶奶 同学 他 她 孩子
"""
"""People and animals of whom a text may speak instead of the speaker."""
SELF: Final = """
    i$ i'm i've i'd i'll me$ my$ mine$ we$ we're we've us$ our$ user$ user's users$ the_user
    ich$ mir$ mich$ mein meine wir$ uns$ unser nutzer nutzerin benutzer habe$ hab$ bin$
    yo$ me$ mi$ mis$ nos$ nuestr usuari je$ j'ai j'habite j' mon$ ma$ mes$ nous$ notre$ nos$ on$ utilisateur utilisatrice
    eu$ meu$ minha$ meus$ minhas$ nosso nossa usuari io$ mio$ mia$ noi$ nostro ik$ mijn$ wij$ onze$ ons$
    我 咱 用户
"""
"""Words by which a text speaks of its speaker."""
ASKING: Final = """
    que cual cuales quien quienes donde cuando cuanto cuantos cuanta como quel quelle quels qui ou quand combien comment quoi est-ce
    qual quais quem onde quando quanto quantos como chi dove quale che wie wat waar wanneer welk welke hoeveel tenia llamaba avait zuvor auparavant beim welchem welcher welches ahora actual ancien
    es son esta estan tiene tengo llama llamo utilisateur usuario usuaria utilizador suis est fait faire c'est j'ai ai-je
    tenho tem estou sou meu minha mis antes avant vorher fruher damals derzeit zurzeit momentan currently previously before
    lautet lauten nutze benutze verwende wohne arbeite used use kind type sort much many often long high old called now exactly again moment present now get go goes eigentlich nochmal denn pls plz please btw rn anyway actually remind
    former formerly previous earlier originally original initially first past ursprunglich davor voriges vorige vorigen precedent
    precedente anterior antigamente antiguo antigo originalmente
    already ya deja schon bereits
    service project system app do does did have has had got am was were been be my our the_user user's i we
"""
"""Words of questions that name nothing."""

PREDICATES: Final = """
is are was were am i'm we're it's he's she's they're that's isn't aren't : = use uses using run runs live lives work works
cost costs weigh weighs drive drives earn earns prefer prefers expire expires start starts begin begins end ends open
opens close closes belong belongs take takes meet meets stay stays pay pays listen listens need needs go goes last lasts
ist sind bin war heißt heiße wohne wohnt wohnen lebe lebt leben arbeite arbeitet kostet nutzt nutzen nutze verwendet
verwenden läuft beginnt endet fahre fährt wiegt zahle zahlt
es son está están estoy soy vivo vive trabajo trabaja cuesta usa usamos uso llama empieza
est sont suis c'est habite travaille coûte utilise utilisons commence s'appelle paie
é são sou moro mora custa começa è sono abito costa usiamo lavoro inizia
是 在 叫 住 用 为 改 换 搬 值
"""
"""Words that say something of what stands before them, where there is one value at a time."""
ARTICLES: Final = """
i we my our the a an ich wir mein meine unser unsere der die das yo el la mi je le mon ma eu o meu minha 我 的 们 now jetzt 现
"""
