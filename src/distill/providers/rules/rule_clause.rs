//! Decides whether a clause of a prompt states a rule of the user.

use super::prompt::begins_with_a_task;
use super::rule_phrases::{
    ALTERNATIVES, CIRCUMSTANCES, COMMAND_LIMITS, COMPLAINTS, COMPLAINTS_WIDE, CONSIDERATIONS,
    CONTRASTS, CONTRASTS_WIDE, CUSTOM_ENDINGS, CUSTOMS, CUSTOMS_WIDE, DEMANDS, DEMANDS_WIDE,
    DISMISSALS, EXPECTATIONS, FAULTS, FAULTS_WIDE, FILLERS, FINITE, FOR_NOW, GENERAL_CONDITIONS,
    GENERAL_OBJECTS, GOING_ON, IMPERATIVES, INQUIRIES, LOOKS, MANNERS, MYSELF, NEGATIVE_QUESTIONS,
    NO_CUSTOMS, NO_DEMANDS, NO_DEMANDS_WIDE, ORDERS, ORDERS_WIDE, OUTWARD, PARTICULAR, PASSING,
    PLANNED, POLITE, PRESCRIBES, PROHIBITIONS, PROHIBITIONS_WIDE, PRONOUNS, PROPERTIES, QUESTIONS,
    RULE_LABELS, RULE_LABELS_WIDE, SHARED_WORK, SHARED_WORK_WIDE, SINGLE_CONDITIONS, STANDING,
    STANDING_QUESTIONS, STANDING_VERBS, STANDING_WIDE, STILL, SUBJECTS, WISHES, WISHES_WIDE,
};
use super::text::{alternatives, contains_any, is_among, padded, starts_with_any, words};

/// A clause, normalized for comparison with phrases.
pub(super) struct Clause<'c> {
    written: &'c str,
    /// Lower case, with plain apostrophes.
    lower: String,
    /// Whole words, separated by single spaces.
    text: String,
    /// Byte offset in `text` of the part that states or orders something.
    main_at: usize,
    words: usize,
}

/// A longer text without an imperative is a statement.
const FRAGMENT_WORDS_MAX: usize = 8;

/// Maximum number of words between the start of a command and a limit such as "only".
const LIMIT_WORDS_BEFORE_MAX: usize = 3;

const BAN_WORDS_MAX: usize = 8;
const LABEL_WORDS_MAX: usize = 3;

impl<'c> Clause<'c> {
    pub(super) fn of(written: &'c str) -> Self {
        let lower = written.to_lowercase().replace('’', "'");
        let text = padded(&lower);
        let main_at = text.len() - main_clause(&text).len();
        Self { written, lower, main_at, words: words(written), text }
    }

    /// How clearly the clause states a rule; 0 if it does not.
    pub(super) fn strength(&self) -> u8 {
        if self.words < 2 {
            return 0;
        }
        let (forbids, is_command) = (self.forbids(), self.is_command());
        let is_limit = self.is_limit();
        let is_demand = self.is_demand();
        match () {
            () if self.complains() && !self.reports_a_fault() => 3,
            () if self.is_question() => 2 * u8::from(self.demands_by_asking() && self.words >= 4),
            () if starts_with_any(&self.text, QUESTIONS) && !self.has(" where possible ") => 0,
            () if self.has(DISMISSALS) || self.is_report() => 0,
            () if self.has(ALTERNATIVES) => 0,
            // "Check the notes, but don't change them."
            () if starts_with_any(self.main(), LOOKS) && !self.shares_work() => {
                let (_, rest) = self.main().split_once(" , ").unwrap_or_default();
                let has_rule =
                    contains_any(rest, " should | must | don't | do not | dont | never ");
                u8::from(has_rule && !self.has(PASSING)) * 2
            }
            () if self.is_standing() && self.words >= 3 => 4,
            () if self.is_passing() => {
                u8::from(is_command && forbids && contains_any(self.main(), OUTWARD)) * 2
            }
            () if self.has(FOR_NOW) => u8::from(is_command && is_limit) * 2,
            () if self.is_labelled() || self.is_manner() => 3,
            () if self.is_wish() => 2 + u8::from(is_limit),
            () if self.shares_work() || self.is_custom() || self.is_property() => 3,
            () if self.has(CONSIDERATIONS) && !is_limit => 0,
            () if self.has(" we need to have | we need to be ") => 2,
            () if self.is_general_condition() => 3,
            () if self.is_no_demand() => u8::from(is_limit && is_command),
            () if starts_with_any(self.main(), STANDING_VERBS)
                && !starts_with_any(self.main(), GOING_ON) =>
            {
                2
            }
            () if self.words < 3 => 2 * u8::from(is_command && forbids),
            () if is_demand && is_limit => 3,
            () if is_demand || self.is_exclusion() || is_limit && is_command => 2,
            () if (self.is_order() || self.is_means()) && is_command => 1,
            () => 0,
        }
    }

    /// Whether the rule is about how to work, and so applies again.
    pub(super) fn is_lasting(&self) -> bool {
        if self.complains() || self.has(STANDING_QUESTIONS) {
            return true;
        }
        let is_open = self.is_question() || self.is_no_demand() || self.has(FOR_NOW);
        if is_open || self.is_passing() || self.strength() == 0 {
            return false;
        }
        // "So that it is always visible" describes a result.
        let is_result = self.has(" so that | find a way | make it | make the | make sure ");
        (self.is_standing() && !is_result)
            || self.is_custom()
            || self.is_property()
            || self.is_manner()
            || self.shares_work()
            || self.is_labelled()
            || self.is_general_condition()
            || self.is_command() && self.forbids()
            || starts_with_any(
                self.main(),
                " prefer | avoid | favor | favour | stick to | no | never ",
            )
            || self.has(" i prefer | i'd prefer | i hate | i don't like | we prefer ")
    }

    fn has(&self, list: &str) -> bool {
        contains_any(&self.text, list)
    }

    fn has_wide(&self, list: &str) -> bool {
        contains_any(&self.lower, list)
    }

    fn main(&self) -> &str {
        &self.text[self.main_at..]
    }

    fn is_question(&self) -> bool {
        self.written.ends_with(['?', '？'])
    }

    fn complains(&self) -> bool {
        self.has(COMPLAINTS) || self.has_wide(COMPLAINTS_WIDE)
    }

    /// Matches "The cart should not depend on the shop, should it?"
    fn demands_by_asking(&self) -> bool {
        let is_tagged = self.has(" should not | should never | must not | must never ");
        let is_request = starts_with_any(&self.text, POLITE);
        starts_with_any(&self.text, NEGATIVE_QUESTIONS) && !self.names_code()
            || starts_with_any(&self.text, WISHES)
            || self.has(STANDING_QUESTIONS)
            || is_request && self.has(" every time | any time | anytime | always ")
            || is_request && self.is_limit() && !self.has(INQUIRIES)
            || is_tagged && !starts_with_any(&self.text, QUESTIONS)
    }

    /// A proposal about a named function or type is about this change only.
    fn names_code(&self) -> bool {
        let is_code = |word: &str| {
            let inner = word.char_indices().skip(1);
            word.contains("()")
                || word.contains("::")
                || word.contains('_')
                || word.starts_with('`')
                || word.chars().any(char::is_lowercase)
                    && inner.clone().any(|(_, c)| c.is_ascii_uppercase())
        };
        self.written.split_whitespace().any(is_code)
    }

    /// Matches "The callback never fires", which describes what happens rather than what should
    /// happen.
    fn is_report(&self) -> bool {
        let describes = self.has(" never | always ") && self.describes_a_subject();
        self.reports_a_fault()
            || describes && !self.has(" should | must | may | can | will ")
            || self.has(" i see | i only see | i can see | i get | i count ")
                && self.has(" should ")
            || self.has(STILL)
            || self.has(EXPECTATIONS)
            || self.supposes()
    }

    fn reports_a_fault(&self) -> bool {
        let has_fault = contains_any(self.main(), FAULTS) || self.has_wide(FAULTS_WIDE);
        has_fault && !self.has(PRESCRIBES) && !self.has(WISHES) && !self.is_property()
    }

    /// Matches "The cart never …": the first word is a determiner or a pronoun other than "we" and
    /// "you".
    fn describes_a_subject(&self) -> bool {
        let main = self.main();
        (starts_with_any(main, SUBJECTS) || starts_with_any(main, PRONOUNS))
            && !starts_with_any(main, " we | you | you're | our ")
            // "It is read-only, never write to it."
            && !contains_any(main, " , never | , always | and never | and always | but never ")
    }

    /// Matches "The app must have crashed" and "It must be the cache".
    fn supposes(&self) -> bool {
        if starts_with_any(self.main(), " it must be the | that must be the | this must be the ") {
            return true;
        }
        let mut parts = self.text.split(" must have ");
        parts.next();
        parts.any(|rest| {
            let verb = rest.split(' ').next().unwrap_or_default();
            verb.ends_with("ed") || is_among(verb, "been|gone|broken|lost|come|got")
        })
    }

    fn is_standing(&self) -> bool {
        let is_everywhere = self.has(" everywhere ") && !begins_with_a_task(self.written);
        is_everywhere || self.has(STANDING) || self.has_wide(STANDING_WIDE)
    }

    fn is_passing(&self) -> bool {
        contains_any(&self.text.replace(" yet another ", " another "), PASSING)
    }

    /// Matches "Rule: one component per file".
    fn is_labelled(&self) -> bool {
        let Some((label, rest)) = self.lower.split_once([':', '：']) else { return false };
        let is_label = words(label) <= LABEL_WORDS_MAX
            && (is_among(padded(label).as_str(), RULE_LABELS)
                || contains_any(label, RULE_LABELS_WIDE));
        is_label && words(rest) >= 2
    }

    /// Matches "Answer in German", but not "Translate the page in German".
    fn is_manner(&self) -> bool {
        self.has(MANNERS)
            && !starts_with_any(self.main(), " translate ")
            && !self.describes_a_subject()
            || self.has_wide("英語で|日本語で|用中文|用英文|한국어로|영어로")
    }

    /// Matches "I want JSON first", but not "I want to see it", which starts a task.
    fn is_wish(&self) -> bool {
        let follows = |wish: &'static str| {
            self.text.match_indices(wish).map(move |(at, wish)| &self.text[at + wish.len() - 1..])
        };
        self.has(WISHES)
            || self.has_wide(WISHES_WIDE) && !self.has_wide(NO_DEMANDS_WIDE)
            || [" i want ", " i really want ", " we want ", " i'd like ", " i would like "]
                .into_iter()
                .flat_map(follows)
                .any(|what| !starts_with_any(what, " to | you "))
            || [" i like ", " i favor "]
                .into_iter()
                .flat_map(follows)
                .any(|what| !starts_with_any(what, PARTICULAR))
    }

    /// Matches "Ask me before deleting" and "I do the releases".
    fn shares_work(&self) -> bool {
        let is_own = starts_with_any(self.main(), " i'll | i will | i do | i'm going to ");
        let is_next_step = self.words < 4 && self.has(" i'll | i will ");
        self.has(SHARED_WORK)
            && !is_next_step
            && !self.has(" before you started | before you changed ")
            || self.has_wide(SHARED_WORK_WIDE)
            || is_own && self.has(MYSELF)
    }

    /// Matches "We use pnpm here".
    fn is_custom(&self) -> bool {
        let is_said = starts_with_any(self.main(), CUSTOMS)
            || starts_with_any(&self.text, CUSTOMS)
            || self.has(" , we use | so we use | that we use ") && self.has(CONTRASTS)
            || self.has(CUSTOM_ENDINGS)
            || self.has_wide(CUSTOMS_WIDE);
        is_said && !self.has(NO_CUSTOMS) && self.words >= 3
    }

    /// Matches "The staging server is off limits".
    fn is_property(&self) -> bool {
        let main = self.main();
        let has_name = !starts_with_any(main, SUBJECTS)
            && !starts_with_any(main, PRONOUNS)
            && !starts_with_any(main, CIRCUMSTANCES);
        // "Ids are strings, not numbers."; "Money is always in cents."
        let is_corrected = contains_any(main, " is | are ") && contains_any(main, " , not ")
            || contains_any(main, " is never | are never | is always | are always ");
        self.has(PROPERTIES) && !starts_with_any(main, PRONOUNS) && self.words >= 3
            || starts_with_any(main, " it's important | it is important ")
            || has_name && is_corrected && !self.is_no_demand()
            || starts_with_any(main, " each | every ")
                && contains_any(main, " needs | gets | has | goes | starts ")
            || starts_with_any(main, " nobody | no one ")
                && !main.split(' ').any(|word| word.ends_with("ed"))
    }

    /// Matches "When you rename a column, write a migration".
    fn is_general_condition(&self) -> bool {
        let text = self.text.as_str();
        let Some((condition, _)) = text.split_once(" , ") else { return false };
        let condition = &text[..=condition.len()];
        let leads = alternatives(FILLERS).find(|filler| condition.starts_with(filler));
        let condition = leads.map_or(condition, |filler| &condition[filler.len() - 1..]);
        starts_with_any(condition, GENERAL_CONDITIONS)
            && !contains_any(condition, SINGLE_CONDITIONS)
            && self.is_command()
            && !starts_with_any(self.main(), LOOKS)
    }

    fn is_demand(&self) -> bool {
        // "We should add a total" and "A total should also appear" are tasks.
        let is_plan = self.has(" should also ") && !self.has(" every | each | all ")
            || self.has(" we need a | we need an | we need another | we need some ")
            || is_among(self.after_we(), PLANNED);
        let is_general = self.has(GENERAL_OBJECTS) && !begins_with_a_task(self.main().trim_start());
        let is_said = self.has(DEMANDS) || self.has_wide(DEMANDS_WIDE) || is_general;
        is_said && (!is_plan || self.is_limit())
    }

    /// The verb after "we should" or "we must".
    fn after_we(&self) -> &str {
        let rest = |words: &str| self.text.split_once(words).map(|(_, rest)| rest);
        let rest = rest(" we should ").or_else(|| rest(" we must ")).unwrap_or_default();
        rest.split(' ').next().unwrap_or_default()
    }

    fn is_limit(&self) -> bool {
        self.forbids()
            || self.has(CONTRASTS)
            || self.has_wide(CONTRASTS_WIDE)
            || self.is_exclusion()
            || self.is_command() && has_limit(self.main(), COMMAND_LIMITS)
    }

    /// "Rename it, no other change" is a task.
    fn is_exclusion(&self) -> bool {
        self.has(" , no | , so no ") && !begins_with_a_task(self.written) || is_ban(self.main())
    }

    fn forbids(&self) -> bool {
        self.has(PROHIBITIONS)
            || self.has_wide(PROHIBITIONS_WIDE)
            || forbids_in_french(&self.text)
            || forbids_in_russian(&self.text)
            || forbids_in_turkish(&self.text)
    }

    fn is_order(&self) -> bool {
        let is_conditional = self.has(" if there is | if there are ") && !self.has(INQUIRIES);
        self.has(ORDERS)
            || self.has_wide(ORDERS_WIDE)
            || self.text.ends_with(" before ")
            || is_conditional
    }

    /// Matches "Use the second cart", but not "Use the cart to sell pens", which is a task.
    fn is_means(&self) -> bool {
        let main = self.main();
        starts_with_any(main, " use ")
            && !contains_any(main, " to | on this | and | for the | use it | use this | option ")
    }

    fn is_no_demand(&self) -> bool {
        self.has(NO_DEMANDS) || self.has_wide(NO_DEMANDS_WIDE)
    }

    /// Whether the clause is an imperative, or a few words without subject and verb, such as
    /// "English only".
    fn is_command(&self) -> bool {
        let main = self.main();
        let verb = main.split(' ').nth(1).unwrap_or_default();
        // "In the shop we tested it" also has a subject.
        let places = " in | on | at | with | as | since | given ";
        let has_subject = starts_with_any(main, SUBJECTS)
            || starts_with_any(main, PRONOUNS)
            || starts_with_any(main, places);
        let is_fragment = self.words <= FRAGMENT_WORDS_MAX && !contains_any(main, FINITE);
        // "Big five, separate and don't couple."
        let is_joined = contains_any(
            main,
            " , don't | and don't | but don't | , do not | and do not | but do not | , never | \
             and never | but never ",
        );
        !has_subject && (is_among(verb, IMPERATIVES) || is_fragment || is_joined)
    }
}

/// The part of a padded sentence that states or orders something, without its introduction.
fn main_clause(text: &str) -> &str {
    let mut text = text;
    loop {
        let filler = alternatives(FILLERS).find(|filler| text.starts_with(filler));
        let circumstance = starts_with_any(text, CIRCUMSTANCES).then(|| text.find(" , ")).flatten();
        let length = match (filler, circumstance) {
            (Some(filler), _) => filler.len(),
            (None, Some(at)) => at + " , ".len(),
            (None, None) => return text,
        };
        text = &text[length - 1..];
    }
}

fn has_limit(main: &str, limits: &str) -> bool {
    alternatives(limits).any(|limit| {
        main.match_indices(limit).any(|(at, _)| {
            let before = &main[..at];
            before.split_whitespace().count() <= LIMIT_WORDS_BEFORE_MAX
                || [" ,", " and", " but"].iter().any(|word| before.ends_with(word))
                || at + limit.len() == main.len()
        })
    })
}

/// Matches `ne modifie jamais`, `n'utilise pas`.
fn forbids_in_french(text: &str) -> bool {
    let mut words = text.split(' ').skip_while(|word| *word != "ne" && !word.starts_with("n'"));
    words.next().is_some() && words.any(|word| is_among(word, "pas|jamais|plus|rien|aucun|aucune"))
}

/// Matches `не меняй`, `не удаляйте`: the verb is an imperative.
fn forbids_in_russian(text: &str) -> bool {
    let commands = ["ай", "уй", "яй", "ей", "йте", "ите", "ьте", "ши", "удь"];
    let is_command = |verb: &str| commands.iter().any(|ending| verb.ends_with(ending));
    let mut words = text.split(' ').skip_while(|word| *word != "не");
    words.next().is_some() && words.next().is_some_and(is_command)
}

/// Matches `dokunma`, `silmeyin`: the verb at the end of the clause is a negative imperative.
fn forbids_in_turkish(text: &str) -> bool {
    // Other languages have such endings, too: Yokohama.
    text.contains(['ç', 'ğ', 'ı', 'ö', 'ş', 'ü'])
        && text.split(" , ").any(ends_with_turkish_prohibition)
}

fn ends_with_turkish_prohibition(text: &str) -> bool {
    let is_after = |word: &&str| is_among(word, "lütfen|artık|");
    let verb = text.rsplit(' ').find(|word| !is_after(word)).unwrap_or_default();
    let endings = ["ma", "me", "mayın", "meyin", "mayınız", "meyiniz"];
    // Nouns with the same ending.
    let others = "tamam|deneme|arama|ödeme|yükleme|güncelleme|doğrulama";
    let is_long = verb.chars().count() >= 4;
    is_long && endings.iter().any(|ending| verb.ends_with(ending)) && !is_among(verb, others)
}

/// Matches "No emojis in comments", but not "No data is returned".
fn is_ban(text: &str) -> bool {
    let others = " \
        no , | no it | no that | no this | no i | no you | no we | no the | no one | no need | \
        no problem | no worries | no idea | no change | no changes | no luck | no matter | \
        no longer | no response | no reply | no replies | no wait | no not | no data | \
        no error | no errors | no difference | no entiendo | no sé | no veo | no puedo | \
        no hay | no funciona ";
    let verbs =
        " is | are | was | were | has | have | does | did | do | shown | found | returned | seems ";
    let count = text.split_whitespace().count();
    starts_with_any(text, " no | pas de | non | não | nada de | kein | keine ")
        && !starts_with_any(text, others)
        && !contains_any(text, verbs)
        && count <= BAN_WORDS_MAX
}
