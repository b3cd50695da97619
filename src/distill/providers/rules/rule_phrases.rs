//! Words and phrases by which rules of the user are recognized, in the languages of the sessions we
//! examined.
//!
//! Phrases between spaces are compared with whole words. Languages without spaces have lists of
//! their own.

/// Holds beyond this turn.
pub(super) const STANDING: &str = " always | from now on | going forward | after every | after each | before every | before each | this repo uses | \
     this project uses | our convention | our conventions | next time | in future | in the future | every time | any time | \
     anytime | never ever | at all times | remember that | remember to | in this repo we | in this project we | \
     ab jetzt | immer | künftig | toujours | désormais | siempre | всегда | впредь | запомни | her zaman | bundan sonra | \
     her seferinde | unutma ";

pub(super) const STANDING_WIDE: &str = "以后|每次|始终|一律|统一|今後|常に|必ず|항상";

/// Demands: on the result, or wishes of the user.
pub(super) const DEMANDS: &str = " must | must not | mustn't | should not | shouldn't | should | should always | should only | should never | \
     has to be | have to be | needs to be | need to be | need to have | needs to have | make sure | ensure | be sure | \
     i want | i only want | i don't want | i do not want | we want | we don't want | we only want | i'd like | i would like | \
     i prefer | prefer | preferable | preferably | i'd rather | i would rather | i don't like | i do not like | \
     i would only | we need | we don't need | we do not need | is not needed | not necessary | is settled | \
     settled already | ask me before | ask me first | ask before | check with me | wait for my | without asking | \
     same style | same pattern | same approach | consistent with | like we do | as we do | follow the existing | \
     reuse the existing | use the existing | we're not using | we are not using | be concise | more concise | be brief | in english | us english | british english | american english | auf deutsch | en français | en español | на русском | по-русски | \
     shoud | shold | shoul | shouild | shuold | shoudl | \
     deliberate | deliberately | on purpose | not important | isn't relevant | not relevant | it's allowed | is allowed | \
     i allow | is fine to | i'll do the | i will do the | i'll handle | i will handle | i'll take care of | \
     i'll merge | i will merge | i'll commit | i will commit | i'll push | i'll deploy | \
     i will take care of | supposed to | allowed to | not allowed | don't reinvent | where possible | wherever possible | whenever possible | \
     soll | sollte | muss | ich will | ich möchte | bitte kein | bitte nicht | il faut | doit | je veux | je préfère | \
     debe | deben | quiero | no quiero | prefiero | vull | no vull | ha de ser | han de ser | hauria de | cal que | \
     должен | должна | должно | должны | надо чтобы | надо , чтобы | нужно чтобы | нужно , чтобы | хочу чтобы | \
     хочу , чтобы | хочу | не хочу | нельзя | обязательно | пусть | лучше бы | lazım | gerek | gerekiyor | olmalı | \
     olmamalı | olsun | olmasın | kalsın | istiyorum | istemiyorum | önemli değil | tercih ";

pub(super) const DEMANDS_WIDE: &str = "用中文|必须|应该|务必|一定要|我希望|我想要|我要|需要|禁止|不能|不要|别用|请用|只要|しないで|べき|ではなく|のみ|해야|하지 마";

/// Begin a demand that something stays, or say what is usual here.
pub(super) const STAYS: &str =
    " keep | leave | we use | we don't use | we do not use | we always | we never ";

/// What the user wants, whatever else the sentence says.
pub(super) const WISHES: &str = " i only want | i don't want | i do not want | i don't like | i do not like | i hate | i prefer | i'd rather | \
     i would rather | we only want | we don't want | we do not want | i want to use | i want to keep | i want to avoid ";

/// Considerations, which are no demands yet.
pub(super) const CONSIDERATIONS: &str = " maybe | perhaps | probably | i think we should | i think that we should | i guess | i feel | \
     i still feel | i wonder | i'm not sure | i am not sure | we could | a good idea | vielleicht | peut-être | quizás | \
     может быть | belki ";

/// Weigh several ways, whatever they forbid.
pub(super) const ALTERNATIVES: &str = " alternatively | theoretically | the question is | whether | another option | would be to | would be nice | \
     there are two ways ";

/// Announce a list of rules, at the end of a line.
pub(super) const RULE_LISTS: &str = " rules | requirements | constraints | conditions | guidelines | conventions | regeln | règles | \
     reglas | правила | kurallar ";

/// Prohibitions.
pub(super) const PROHIBITIONS: &str = " don't | do not | dont | let's not | lets not | never | no need to | nicht | kein | keine | ne pas | jamais | nunca | \
     никогда | не надо | не нужно | не делай | не используй | asla | kullanma | yapma ";

/// One thing and not another.
pub(super) const CONTRASTS: &str = " instead of | rather than | , not | but not | and not | not just | but only | but instead | nothing else | statt | \
     au lieu de | en lugar de | вместо | yerine ";

/// Bounds of a command: at its beginning, behind a comma, or at its end. Elsewhere they mostly
/// describe something.
pub(super) const COMMAND_LIMITS: &str = " only | without | avoid | stop | no more | exactly | just a | no longer | directly to | \
     directly on | nur | ohne | seulement | sans | solo | sin | только | без | sadece ";

/// Holds only for the moment, or only for what lies on the table.
pub(super) const PASSING: &str =
    " yet | just yet | right now | at the moment | for the moment | not now | пока | şimdilik ";

/// Holds for the moment, and so does what is forbidden or left out until then.
pub(super) const FOR_NOW: &str = " for now | vorerst | pour l'instant | por ahora ";

/// Acts that others see. Who forbids one "yet" lifts that later, perhaps in another session.
pub(super) const OUTWARD: &str = " deploy | push | merge | release | publish | update | upgrade | migrate | delete | remove | send | post | \
     close | restart ";

/// Requests in the form of a question.
pub(super) const POLITE: &str = " can you | could you | would you | can we | could we | please ";

/// Ask for an answer, not for a change.
pub(super) const INQUIRIES: &str =
    " why | how | what | which | whether | explain | tell | check | see | verify | look | find ";

/// Begin a request for an answer.
pub(super) const LOOKS: &str = " check | verify | look | find out | explain | tell me | show me | investigate | let investigate | \
     let's investigate | let's see | analyze | analyse | research | review | critique | think | think about | \
     untersuche | prüfe | vérifie | revisa | проверь | посмотри | incele | kontrol ";

/// Orders of work, in commands.
pub(super) const ORDERS: &str = " first | before you | before starting | begin by | begin with | start by | follow | zuerst | d'abord | primero | сначала | önce ";

/// Complaints that imply a rule; they may be questions.
pub(super) const COMPLAINTS: &str = " why are you | why aren't you | why arent you | why aren'tyou | why do you | why did you | why didn't you | \
     you're supposed | you are supposed | i told you | i asked you | as i said | i said | you forgot | too verbose | \
     you should have | that's not what | not what i want | not what i asked | not appropriate | not acceptable | \
     unacceptable | too complicated | overkill | over-engineered | overengineered | why aren't we | isn't this listed | still using | i did not say | i didn't say | \
     i did not ask | i didn't ask | ich habe gesagt | я же | я просил | söyledim | demiştim ";

/// Questions that are demands.
pub(super) const NEGATIVE_QUESTIONS: &str = " can't | cant | couldn't | shouldn't | wouldn't it | why not | why don't we | why don't you | \
     can we have ";

/// Questions that are demands wherever these words stand.
pub(super) const STANDING_QUESTIONS: &str = " can you always | can it always | can we always | could you always | could it always | please always | \
     would you always | kannst du immer | her zaman yapabilir | можешь всегда ";

/// Begin a question, with or without its mark.
pub(super) const QUESTIONS: &str = " what | which | how | where | when did | does | did | is there | are there | is it | is this | was | were | who ";

/// Statements about the speaker's own work, knowledge or expectation.
pub(super) const NO_DEMANDS: &str = " i don't know | i don't understand | i do not understand | i don't think | i don't see | i do not see | i don't get | \
     don't worry | never mind | nevermind | should work | should be fine | should be fixed | should be able | should have been | \
     i should | should i | should we | what should | i need to | i need you to | i want you to | i want to | i'd like to | \
     i would like to | i'd like you | i would like you | we need to | let me know | i never | it never | they never | we want to | \
     doesn't need | does not need | should find a way | need to find a way | seems | still does ";

/// "I need you to …" begins a task.
pub(super) const NO_DEMANDS_WIDE: &str = "需要你|帮我|我现在要";

/// Words before what a sentence says.
pub(super) const FILLERS: &str = " and | but | so | also | then | yes | ok | okay | please | pls | well | again | plus | no , | great , | \
     good , | perfect , | nice , | cool , | sure , | right , | correct , | agreed , | thanks , | good idea to | can you | \
     could you | can we | could we | let's | lets | bitte | пожалуйста | lütfen | , ";

/// Begin a clause that says when or where the rest holds.
pub(super) const CIRCUMSTANCES: &str = " if | when | whenever | after | before | since | as | for | in | on | at | once | while | with | given ";

/// Subjects that need a sentence before them, or are the speaker.
pub(super) const PRONOUNS: &str = " i | it | it's | this | that | that's | they | we | you | he | she | there | there's | i've | i'm | i'd | \
     i'll | we've | we're | you've | you're ";
