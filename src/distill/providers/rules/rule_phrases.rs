//! Words and phrases that identify rules of the user.
//!
//! Phrases between spaces match whole words. Each list starts with English; other languages follow
//! on separate lines. Languages without spaces between words have separate lists, named `_WIDE`.

/// The rule applies beyond this turn.
pub(super) const STANDING: &str = " \
    always | from now on | from here on | from this point on | going forward | moving forward | \
    henceforth | whenever | each time | every time | any time | anytime | after every | \
    after each | before every | before each | next time | in future | in the future | \
    for the future | for future reference | never ever | at all times | under no circumstances | \
    at no point | no matter what | whatever you do | as a rule | by convention | remember that | \
    remember to | keep in mind | bear in mind | don't forget | do not forget | unless i say | \
    unless i ask | unless i tell | until i say | until i tell | until i ask | at a time | \
    this repo uses | this project uses | our convention | our conventions | our policy | \
    in this repo we | in this project we | in this codebase we | let's agree on | \
    ab jetzt | ab sofort | von nun an | immer | künftig | zukünftig | in zukunft | jedes mal | \
    grundsätzlich | niemals | merk dir | denk daran | \
    toujours | désormais | dorénavant | à partir de maintenant | à l'avenir | chaque fois | \
    n'oublie pas | \
    siempre | a partir de ahora | de ahora en adelante | en el futuro | cada vez que | nunca | \
    jamás | no olvides | recuerda que | \
    sempre | d'ora in poi | ogni volta | a partir de agora | daqui em diante | d'ara endavant | \
    mai més | \
    всегда | впредь | отныне | с этого момента | в дальнейшем | на будущее | каждый раз | \
    запомни | не забывай | никогда | \
    her zaman | daima | bundan sonra | bundan böyle | her seferinde | hiçbir zaman | asla | \
    sakın | unutma ";
pub(super) const STANDING_WIDE: &str = "\
    以后|今后|从现在起|从现在开始|每次|每当|始终|永远|一律|统一|记住|切记|今後|これから|毎回|\
    常に|必ず|항상|앞으로|언제나|매번|절대";

/// Similar to `STANDING`, but they report that something is still the case.
pub(super) const STILL: &str = " \
    immer noch | noch immer | wie immer | toujours pas | comme toujours | como siempre | \
    come sempre | \
    как всегда | her zamanki ";

/// Phrases that drop a subject.
pub(super) const DISMISSALS: &str =
    " never mind | nevermind | don't worry | never seen | never had ";

/// Demands on the result.
pub(super) const DEMANDS: &str = " \
    must | must not | mustn't | should not | shouldn't | should | has to be | have to be | \
    has to | needs to be | need to be | need to have | needs to have | may not | may never | \
    make sure | ensure | be sure | we need | we don't need | we do not need | \
    you don't have to | you do not have to | you don't need to | is not needed | not necessary | \
    preferable | preferably | is settled | settled already | same style | same pattern | \
    same approach | consistent with | like we do | as we do | follow the existing | \
    reuse the existing | use the existing | we're not using | we are not using | us english | \
    british english | american english | british spelling | american spelling | shoud | shold | \
    shoul | shouild | shuold | shoudl | deliberate | deliberately | on purpose | not important | \
    isn't relevant | not relevant | supposed to | allowed to | not allowed | it's allowed | \
    is allowed | i allow | you may | is fine to | don't reinvent | where possible | \
    wherever possible | whenever possible | wherever you can | \
    soll | sollen | sollst | sollte | sollten | muss | müssen | darf nicht | dürfen nicht | \
    darf sich nicht | dürfen sich nicht | achte darauf | stelle sicher | stell sicher | \
    bitte kein | bitte keine | bitte keinen | bitte nicht | bitte nichts | \
    il faut | doit | doivent | veille à | assure-toi | assurez-vous | \
    debe | deben | hay que | asegúrate | debería | deberían | \
    deve | devono | devem | ha de ser | han de ser | hauria de | cal que | \
    должен | должна | должно | должны | надо чтобы | надо , чтобы | нужно чтобы | \
    нужно , чтобы | нельзя | запрещено | обязательно | обязательны | пусть | лучше бы | \
    убедись | следи | \
    lazım | gerek | gerekiyor | olmalı | olmamalı | olsun | olmasın | kalsın | önemli değil | \
    emin ol | dikkat et ";
pub(super) const DEMANDS_WIDE: &str = "\
    必须|应该|应当|务必|一定要|都要|都需要|要用|请用|用中文|用英文|只要|只能|只用|只改|不能|禁止|\
    优先|尽量|べき|のみ|英語で|日本語で|해야|한국어로|영어로";

/// Objects that stand for all future cases.
pub(super) const GENERAL_OBJECTS: &str = " every new | each new | all new | any new | in every ";

/// Preferences and wishes of the user, anywhere in a sentence.
pub(super) const WISHES: &str = " \
    i only want | i don't want | i do not want | i don't like | i do not like | i hate | \
    i dislike | i prefer | i'd prefer | i would prefer | i actually prefer | i'd rather | \
    i would rather | i'd only | i would only | i'm in favor of | we prefer | we favor | \
    we'd rather | we only want | we don't want | we do not want | we want to avoid | \
    we want to keep | i want to use | i want to keep | i want to avoid | \
    ich will kein | ich will keine | ich möchte kein | ich möchte keine | ich bevorzuge | \
    ich mag kein | ich mag keine | lieber | \
    je préfère | je ne veux pas | je n'aime pas | je veux que | \
    prefiero | no quiero | no me gusta | quiero que | preferisco | non voglio | prefiro | \
    não quero | vull | no vull | \
    предпочитаю | не хочу | не люблю | мне не нравится | хочу чтобы | хочу , чтобы | \
    tercih ederim | tercih ediyorum | istemiyorum | sevmiyorum ";
pub(super) const WISHES_WIDE: &str = "我希望|我想要|我要|我喜欢|我不喜欢|我更喜欢|我不想|宁可|宁愿";

/// Words after "I like" that refer to one thing, not to a general preference.
pub(super) const PARTICULAR: &str =
    " the | this | that | it | your | how | what | these | those | both | all | option | to ";

/// Conventions of the team, at the start of a sentence.
pub(super) const CUSTOMS: &str = " \
    we use | we don't | we do not | we always | we never | we only | we support | we target | \
    we follow | we keep | we store | we write | we name | we prefix | we deploy | we squash | \
    we return | we avoid | we stick to | we validate | we agreed on | we agreed that | \
    we agreed to | we're on | we are on | our team | our code | everybody here | \
    wir benutzen | wir verwenden | wir nutzen | wir haben uns geeinigt | wir deployen | \
    on utilise | nous utilisons | usamos | utilizamos | usiamo | \
    мы используем | мы не используем | у нас принято | \
    bizde | biz ";
pub(super) const CUSTOMS_WIDE: &str =
    "我们用|我们都用|我们不用|我们统一|使用しています|사용하고 있어";

/// Conventions in Turkish, where the verb ends the sentence.
pub(super) const CUSTOM_ENDINGS: &str = " kullanıyoruz | kullanmıyoruz | yapmıyoruz | istiyoruz ";

/// Similar to `CUSTOMS`, but they report something.
pub(super) const NO_CUSTOMS: &str = " \
    we don't have | we don't know | we don't see | we don't get | we do not have | \
    we do not know | we only have | we only ever have | we always have | we never have | \
    we only got | we only see | we don't understand | we're on it | we are on it ";

/// General properties of a thing.
pub(super) const PROPERTIES: &str = " \
    is off limits | are off limits | is off-limits | are off-limits | is forbidden | \
    are forbidden | is banned | are banned | is not supported | are not supported | \
    is mandatory | are mandatory | is out of scope | are out of scope | is read-only | \
    are read-only | doesn't matter | does not matter | matters more | is more important | \
    are more important | comes first | come first | is the minimum | source of truth | \
    it's important that | it is important that | belongs in | belong in | lives in | live in | \
    goes into | go into | goes next to | go next to | never goes | never go | must stay | \
    has to stay | have to stay | \
    ist tabu | ist verboten | sind verboten | ist pflicht | est interdit | sont interdits | \
    está prohibido | \
    запрещены | обязателен | \
    yasak | zorunlu ";

/// Verbs that start a demand about all such work, or a demand to keep something.
pub(super) const STANDING_VERBS: &str = " \
    prefer | favor | favour | avoid | refrain | stick to | stick with | default to | treat | \
    adhere to | respect | keep | leave | minimize | limit | restrict | \
    vermeide | bevorzuge | \
    évite | évitez | évite de | préfère | evita | evitad | evitare | evite | \
    избегай | избегайте | старайся | \
    kaçın | tercih et ";

/// Similar to `STANDING_VERBS`, but they only ask to continue.
pub(super) const GOING_ON: &str = " \
    keep going | keep on | keep at | keep working | keep trying | keep me posted | leave it | \
    leave that ";

/// How to communicate with the user.
pub(super) const MANNERS: &str = " \
    be concise | be brief | be precise | be honest | be explicit | be specific | be strict | \
    be consistent | be careful | address me | keep it short | keep it simple | keep it minimal | answer in | \
    answer with | answer only | reply in | reply with | reply only | respond in | respond with | \
    explain less | less verbose | more concise | fewer words | no explanation | \
    no explanations | small steps | over-engineer | overengineer | yagni | one by one please | \
    do not assume | don't assume | don't guess | in english | in german | in french | \
    in spanish | in russian | in turkish | in chinese | in italian | in japanese | \
    auf deutsch | auf englisch | \
    en français | en anglais | en español | en inglés | in italiano | in inglese | \
    em português | \
    на русском | на английском | по-русски | по-английски | \
    türkçe | ingilizce ";

/// Division of work, and which questions come first.
pub(super) const SHARED_WORK: &str = " \
    ask me before | ask me first | ask before | ask first | ask me instead | check with me | \
    confirm with me | wait for my | wait for me | wait until i | let me review | let me verify | \
    let me decide | let me commit | let me merge | let me push | my approval | my permission | \
    my go-ahead | without asking | before you | i'll do the | i will do the | i do the | \
    i'll handle | i will handle | i'll take care of | i will take care of | i'll merge | \
    i will merge | i'll commit | i will commit | i'll push | i'll deploy | i push | i commit | \
    don't ask | do not ask | \
    frag mich | fragt mich | frag vorher | ohne zu fragen | ohne mich zu fragen | \
    mache ich selbst | mach ich selbst | ich selbst | \
    demande-moi | demandez-moi | sans mon accord | sans demander | moi-même | pregúntame | \
    sin preguntar | yo mismo | lo hago yo | \
    chiedimi | senza chiedere | sem perguntar | \
    спрашивай | спроси меня | без спроса | согласуй | я сам | я сама | \
    bana sor | sormadan | ben yapacağım | ben yaparım ";
pub(super) const SHARED_WORK_WIDE: &str = "\
    先问我|问我|由我|我来提交|我自己|等我确认|经我同意|确认后再|聞いてから|確認してから|물어보고|\
    물어봐";

/// "I run the tests myself".
pub(super) const MYSELF: &str = " myself | by hand | manually ";

/// Considerations, which are not yet demands.
pub(super) const CONSIDERATIONS: &str = " \
    maybe | perhaps | probably | i think we should | i think that we should | i guess | i feel | \
    i still feel | i wonder | i'm not sure | i am not sure | we could | a good idea | \
    vielleicht | peut-être | quizás | \
    может быть | belki ";

/// Phrases that compare alternatives; prohibitions near them are not rules.
pub(super) const ALTERNATIVES: &str = " \
    alternatively | theoretically | the question is | whether | another option | would be to | \
    would be nice | there are two ways ";

/// Words at the end of a line that announce a list of rules.
pub(super) const RULE_LISTS: &str = " \
    rules | requirements | constraints | conditions | guidelines | conventions | \
    regeln | règles | reglas | \
    правила | kurallar ";

/// Labels before one rule: "Rule: one component per file".
pub(super) const RULE_LABELS: &str = " \
    rule | rules | the rule is | guideline | guidelines | convention | conventions | \
    constraint | constraints | requirement | requirements | policy | style | important | \
    remember | reminder | preference | nb | \
    regel | wichtig | règle | regla | importante | \
    правило | важно | запомни | \
    kural | önemli ";
pub(super) const RULE_LABELS_WIDE: &str = "规则|规范|约定|要求|重要|記住|记住|ルール";

pub(super) const PROHIBITIONS: &str = " \
    don't | do not | dont | let's not | lets not | never | no need to | no more | nothing may | \
    nicht | nichts | \
    kein | keine | keinen | nie | niemals | ne pas | jamais | nunca | jamás | never | \
    никогда | не надо | не нужно | \
    asla | sakın ";
pub(super) const PROHIBITIONS_WIDE: &str = "\
    不要|请勿|切勿|不准|不许|不得|避免|别动|别用|别改|别删|别加|别再|别碰|别提交|请别|しないで|\
    ないでください|するな|禁止|하지 마|하지마|지 마세요|금지";

/// One thing instead of another.
pub(super) const CONTRASTS: &str = " \
    instead of | rather than | , not | but not | and not | not just | but only | but instead | \
    nothing else | nowhere else | \
    statt | anstatt | anstelle | sondern | \
    au lieu de | plutôt que | et non | , pas | en lugar de | en vez de | invece di | em vez de | \
    en lloc de | \
    вместо | , а не | \
    yerine | değil ";
pub(super) const CONTRASTS_WIDE: &str = "而不是|ではなく|代わりに|말고|대신";

/// Limits of a command: at its start, after a comma, or at its end. Elsewhere they usually describe
/// something.
pub(super) const COMMAND_LIMITS: &str = " \
    only | without | avoid | stop | quit | no more | exactly | just a | just the | no longer | \
    directly to | directly on | over | \
    nur | ohne | ausschließlich | seulement | uniquement | sans | pas de | solo | sólo | sin | \
    soltanto | senza | sem | \
    только | без | \
    sadece | yalnızca ";

/// Applies only now, or only to the current task.
pub(super) const PASSING: &str =
    " yet | just yet | right now | at the moment | for the moment | not now | пока | şimdilik ";

/// Applies only now, including any prohibition in the same sentence.
pub(super) const FOR_NOW: &str = " for now | vorerst | pour l'instant | por ahora ";

/// Actions with effects outside the machine. A prohibition with "yet" can last beyond the session.
pub(super) const OUTWARD: &str = " \
    deploy | push | merge | release | publish | update | upgrade | migrate | delete | remove | \
    send | post | close | restart ";

/// Requests phrased as a question.
pub(super) const POLITE: &str = " \
    can you | could you | would you | can we | could we | please | \
    kannst du | könntest du | \
    peux-tu | puedes | \
    можешь ";

/// Requests for an answer, not for a change.
pub(super) const INQUIRIES: &str =
    " why | how | what | which | whether | explain | tell | check | see | verify | look | find ";

/// Starts of a request for an answer.
pub(super) const LOOKS: &str = " \
    check | verify | look | find out | explain | tell me | show me | investigate | \
    let investigate | let's investigate | let's see | analyze | analyse | research | review | \
    critique | think | think about | validate that | validate if | \
    untersuche | prüfe | vérifie | revisa | \
    проверь | посмотри | \
    incele | kontrol ";

/// Words that order the steps of a task, in commands.
pub(super) const ORDERS: &str = " \
    first | before starting | begin by | begin with | start by | follow | \
    zuerst | zuerst den | d'abord | primero | \
    сначала | önce ";
pub(super) const ORDERS_WIDE: &str = "先|まず|먼저";

/// Complaints that imply a rule; they may be questions.
pub(super) const COMPLAINTS: &str = " \
    why are you | why aren't you | why arent you | why aren'tyou | why do you | why did you | \
    why didn't you | you're supposed | you are supposed | i told you | i asked you | as i said | \
    i said | i already said | you forgot to | you keep | too verbose | you should have | \
    that's not what | not what i want | not what i asked | not appropriate | not acceptable | \
    unacceptable | too complicated | overkill | over-engineered | overengineered | \
    why aren't we | isn't this listed | still using | i did not say | i didn't say | \
    i did not ask | i didn't ask | i never asked | \
    ich habe gesagt | ich hatte gesagt | warum hast du | je t'ai dit | pourquoi tu | te dije | \
    por qué has | \
    я же | я просил | я говорил | зачем ты | \
    söyledim | demiştim | neden hep ";
pub(super) const COMPLAINTS_WIDE: &str = "我说过|说过不要|我没让你|谁让你|为什么你";

/// Questions that are demands.
pub(super) const NEGATIVE_QUESTIONS: &str = " \
    can't | cant | couldn't | shouldn't | wouldn't it | why not | why don't we | why don't you | \
    would you mind not | could you not | can you not ";

/// Questions that are demands, anywhere in a sentence.
pub(super) const STANDING_QUESTIONS: &str = " \
    can you always | can it always | can we always | could you always | could it always | \
    please always | would you always | kannst du immer | her zaman yapabilir | \
    можешь всегда ";

/// Starts of a question, with or without a question mark.
pub(super) const QUESTIONS: &str = " \
    what | which | how | where | when did | does | did | is there | are there | is it | \
    is this | was | were | who | \
    warum | wieso | wie | was | welche | pourquoi | comment | quel | quelle | por qué | cómo | \
    qué | \
    почему | как | что | зачем | \
    neden | nasıl | nerede ";

/// Statements about the speaker's own work, knowledge or expectation.
pub(super) const NO_DEMANDS: &str = " \
    i don't know | i don't understand | i do not understand | i don't think | i don't see | \
    i do not see | i don't get | i don't have | don't worry | never mind | nevermind | \
    it should work | this should work | that should work | should work now | should work again | \
    should be fine | should be fixed | should be able | should be enough | should have been | \
    must be something | has to be something | must be kidding | i should | should i | \
    should we | what should | i need to | i need you to | i want you to | i want to | \
    i'd like to | i would like to | i'd like you | i would like you | we need to | let me know | \
    i never | it never | they never | we want to | doesn't need | does not need | \
    should find a way | need to find a way | seems | still does | \
    ich verstehe | ich weiß nicht | je ne comprends | je ne sais | no entiendo | no sé | \
    не понимаю | не знаю | \
    anlamıyorum | bilmiyorum ";
pub(super) const NO_DEMANDS_WIDE: &str = "需要你|帮我|我现在要|不明白|不知道|不懂";

/// Reports of facts and faults.
pub(super) const FAULTS: &str = " \
    fails | fires | failed | error | crashes | crashed | broken | worked | works | appeared | \
    doesn't | does not | didn't | is not working | isn't working | not work | i see | i get | \
    i got | shows | showing | stopped | happens | happened | loads | hangs | seem | seems | \
    was | were | noticed | couldn't find | cannot find | can't find | would stop | \
    for some reason | suddenly | gone | \
    funktioniert nicht | geht nicht | klappt nicht | schlägt fehl | schlagen fehl | \
    öffnet sich nicht | wird nicht | \
    fonctionne pas | marche pas | s'affiche pas | n'apparaît pas | no funciona | no carga | \
    no aparece | no se muestra | \
    non funziona | não funciona | \
    не работает | не загружается | не появляется | не открывается | не видно | \
    çalışmıyor | görünmüyor | açılmıyor | olmuyor ";
pub(super) const FAULTS_WIDE: &str = "\
    报错|失败|崩溃|不能用|没有显示|不显示|打不开|没反应|不生效|出错|エラー|できません|動かない|\
    動きません|안 돼|오류|에러";

/// In a sentence with one of these, a fault is something to prevent, not a report.
pub(super) const PRESCRIBES: &str = " \
    should | must | want | need | needs | may not | always use | never use | make sure | \
    ensure | don't | do not | please | next time | from now on | never | always ";

/// Contrasts of the expected with the actual behaviour.
pub(super) const EXPECTATIONS: &str = " \
    but it shows | but it is | but it's | but i see | but i get | but shows | but returns | \
    but is | but it returns | but got | but was | but it was | but instead it ";

/// Introductory words of a sentence.
pub(super) const FILLERS: &str = " \
    and | but | so | also | then | yes | ok | okay | please | pls | well | again | plus | hmm | \
    no , | hmm no | fyi | nit | note | nb | great , | good , | perfect , | nice , | cool , | \
    sure , | right , | correct , | agreed , | thanks , | good idea to | go ahead and | \
    continue but | now | ideally , | can you | could you | can we | could we | let's | lets | \
    you should | that's wrong , | try to | bitte | \
    пожалуйста | lütfen | , ";

/// Starts of a clause that limits when or where the rule applies.
pub(super) const CIRCUMSTANCES: &str = " \
    if | when | whenever | unless | after | before | since | as | for | in | on | at | once | \
    while | with | given | where | wherever | by | wenn | falls | bevor | si | quand | avant | \
    cuando | antes | \
    если | когда | перед | \
    eğer ";

/// Conditions for any such case, not only for the current task.
pub(super) const GENERAL_CONDITIONS: &str = " \
    if a | if an | if any | if you | if there | if in doubt | if unsure | if something | \
    when a | when an | when any | when you | when in doubt | when there | unless | as long as | \
    before a | before any | before you | after a | after any | after you | wenn du | wenn ein | \
    wenn eine | falls | bevor du | si tu | quand tu | avant de | si un | si une | cuando | \
    antes de | \
    если | когда ты | перед | \
    eğer ";

/// Conditions that apply once.
pub(super) const SINGLE_CONDITIONS: &str = " \
    you are done | you're done | you finish | you are finished | you're finished | \
    you are ready | you're ready | you have time | you want | you like | you think | you look | \
    you click | you open | you press | you agree | you have a | you have the | you can ";

/// Verbs that start a command.
pub(super) const IMPERATIVES: &str = "\
    abort|accept|add|adjust|adopt|align|allow|always|analyze|annotate|answer|append|apply|\
    archive|ask|assert|assign|assume|attach|avoid|base|batch|be|begin|break|bring|build|bump|\
    bundle|cache|call|cap|catch|change|check|choose|clean|clear|close|code|collect|combine|\
    comment|commit|compare|compile|compress|compute|configure|confirm|connect|consider|convert|\
    copy|count|cover|create|crop|cut|debug|declare|decouple|dedupe|default|define|delegate|\
    delete|deliver|deny|deploy|derive|describe|design|detect|develop|disable|discard|dispatch|\
    display|do|document|don't|dont|download|draft|draw|drop|dump|edit|embed|emit|enable|encode|\
    encrypt|end|enforce|ensure|enter|escape|evaluate|exclude|execute|expand|expect|explain|\
    export|expose|extend|extract|factor|fail|favor|favour|fetch|fill|filter|find|finish|fix|flag|\
    flatten|focus|fold|follow|force|forget|fork|format|free|freeze|gate|generate|get|give|go|\
    group|guard|handle|hide|highlight|hold|ignore|implement|import|improve|include|indent|index|\
    inform|inherit|initialize|inject|inline|insert|inspect|install|instead|integrate|introduce|\
    invoke|isolate|join|just|keep|label|launch|leave|let|let's|lets|limit|link|lint|list|load|\
    localize|lock|log|look|lowercase|maintain|make|map|mark|match|measure|mention|merge|migrate|\
    minify|mirror|mock|model|modify|monitor|mount|move|mute|name|nest|never|no|normalize|not|\
    note|notify|offer|omit|only|open|optimize|order|organize|output|override|pack|paginate|parse|\
    pass|paste|patch|pause|pick|pin|place|plan|please|point|populate|port|post|prefer|prefix|\
    prepare|present|preserve|prettify|prevent|preview|print|prioritize|process|produce|profile|\
    propose|protect|prove|provide|prune|publish|pull|push|put|query|queue|quit|quote|raise|read|\
    rebase|rebuild|recheck|record|recreate|reduce|refactor|refer|reference|refrain|refresh|\
    register|reject|release|reload|remember|remind|remove|rename|render|reorder|repeat|replace|\
    reply|report|reproduce|request|require|research|reserve|reset|resize|resolve|respect|respond|\
    restart|restore|restrict|restructure|retain|retry|return|reuse|revert|review|revise|rewrite|\
    rework|rotate|round|route|run|sanitize|save|scale|scan|schedule|scope|search|select|send|\
    separate|serialize|serve|set|share|ship|show|shrink|sign|simplify|simulate|skip|sort|specify|\
    split|squash|stage|start|state|stay|step|stick|stop|store|stream|strip|structure|style|\
    submit|suggest|support|suppress|surface|swap|switch|sync|tag|take|talk|target|tell|test|\
    think|throw|tie|toggle|track|transform|translate|treat|trigger|trim|trust|try|tune|turn|type|\
    undo|unify|uninstall|unignore|update|upgrade|upload|uppercase|use|validate|verify|version|\
    visit|wait|warn|watch|wire|without|work|wrap|write";

/// Verbs after "we should" that describe work planned once.
pub(super) const PLANNED: &str = "\
    add|also|build|change|create|delete|deploy|extend|find|fix|highlight|implement|improve|\
    introduce|investigate|merge|migrate|move|redesign|refactor|release|remove|rename|replace|\
    rewrite|rework|split|update|write";

/// Starts of statements: determiners and similar words.
pub(super) const SUBJECTS: &str = " \
    the | these | those | what | when | where | who | how | why | my | our | your | some | \
    somebody | there | \
    der | die | das | den | ein | eine | ich | es | er | sie | man | mein | unser | dein | \
    le | la | les | l' | je | j'ai | il | elle | ce | cette | ça | c'est | mon | notre | \
    el | los | las | yo | mi | este | esta | lo | è | il | io | o | eu | \
    я | он | она | оно | они | это | этот | эта | \
    ben | bu | şu ";

/// Finite verbs: with one of these, a short text without an imperative is a statement.
pub(super) const FINITE: &str = " \
    is | are | was | were | has | have | had | does | did | can | will | would | it's | works | \
    happens | seems | looks | gets | shows | returns | ist | sind | war | hat | est | sont | \
    es | está | son | était ";

/// Subjects that refer to a previous sentence, or to the speaker.
pub(super) const PRONOUNS: &str = " \
    i | it | it's | this | that | that's | they | we | you | he | she | there | there's | i've | \
    i'm | i'd | i'll | we've | we're | you've | you're ";
