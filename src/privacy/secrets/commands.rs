//! Passwords on a command line: `curl -u me:…`, `mysql -p…`, `redis-cli -a …`, `echo … | sudo -S`.
//!
//! The command may be far before its option, so the option is the trigger. The text before it is
//! read only if a value that could be a secret follows.

use memchr::{memchr, memchr2, memmem, memrchr};

use super::{
    Found,
    headers::cookies,
    names::{Kind, kind_of},
    rules::run,
    values::{is_placeholder, is_spoken_secret},
};
use crate::work;

/// The maximum distance from a command to its option.
const BEFORE_BYTES_MAX: usize = 512;
/// The maximum length of a cookie name.
const COOKIE_NAME_BYTES_MAX: usize = 64;
/// How much of a value is read.
const VALUE_BYTES_MAX: usize = 256;

/// The kind of value of an option.
#[derive(Clone, Copy, PartialEq)]
enum OptionValue {
    /// `me:password`
    Login,
    /// `me%password`
    SambaLogin,
    /// `name=value; name=value`
    Cookies,
    /// A password after a space.
    Password,
    /// A password directly after the option.
    GluedPassword,
}

/// An option with a secret value, and its commands, separated by commas.
struct Login {
    letter: u8,
    takes: OptionValue,
    commands: &'static str,
}

const fn login(letter: u8, takes: OptionValue, commands: &'static str) -> Login {
    Login { letter, takes, commands }
}

const OPTIONS: &[Login] = &[
    login(b'u', OptionValue::Login, "curl"),
    login(b'U', OptionValue::Login, "curl"),
    login(b'U', OptionValue::SambaLogin, "smbclient,rpcclient,smbmap"),
    login(b'b', OptionValue::Cookies, "curl"),
    login(b'a', OptionValue::Login, "http,https,xh,xhs"),
    login(b'a', OptionValue::Password, "redis-cli,valkey-cli"),
    login(
        b'p',
        OptionValue::GluedPassword,
        "\
         mysql,mysqldump,mysqladmin,mysqlimport,mariadb,mariadb-dump,mycli,7z,7za,sshpass",
    ),
    login(
        b'p',
        OptionValue::Password,
        "\
         sshpass,mongosh,mongo,mongodump,mongorestore,docker login,podman login,az login,\
         oc login,cf login,useradd,az sql,az mysql,az postgres,cqlsh,twine,nxc,crackmapexec,\
         registry login",
    ),
    login(b'P', OptionValue::Password, "zip,unzip,sqlcmd,bcp,ipmitool"),
    login(b'w', OptionValue::Password, "ldapsearch,ldapmodify,ldapadd,ldapwhoami,vsql"),
    login(b'k', OptionValue::Password, "openssl"),
    login(b'K', OptionValue::Password, "openssl"),
    login(b'A', OptionValue::Password, "snmpwalk,snmpget,snmpset,snmpbulkwalk"),
    login(b'X', OptionValue::Password, "snmpwalk,snmpget,snmpset,snmpbulkwalk"),
];

/// The secret value of the option whose trigger is at `at`.
pub(super) fn option(text: &[u8], at: usize) -> Option<Found> {
    let (letter, behind) = letter_at(text, at)?;
    let blanks = run(&text[behind..text.len().min(behind + 8)], |byte| matches!(byte, b' ' | b'='));
    let blanks = blanks.max(between_items(&text[behind..]));
    let value = behind + blanks;
    let value = value + run(&text[value..text.len().min(value + 8)], |byte| byte == b'\\');
    let quote = text.get(value).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let start = value + usize::from(quote.is_some());
    let secret = |takes: OptionValue| match takes {
        OptionValue::Login => behind_sign(text, start, quote, b':'),
        OptionValue::SambaLogin => behind_sign(text, start, quote, b'%'),
        OptionValue::Password if blanks > 0 => password(text, start, quote),
        OptionValue::GluedPassword if blanks == 0 => password(text, start, quote),
        OptionValue::Password | OptionValue::GluedPassword => None,
        // Cookies may extend to the end of the text: they are read once the command is known.
        OptionValue::Cookies => {
            let name = &text[start..text.len().min(start + COOKIE_NAME_BYTES_MAX)];
            let name = &name[..run(name, |byte| in_word(byte) || b"$%".contains(&byte))];
            let has_value = !name.is_empty() && text.get(start + name.len()) == Some(&b'=');
            has_value.then_some(Found { start, end: start, rule: Kind::Cookie.rule() })
        }
    };
    let is_possible = |login: &&Login| login.letter == letter && secret(login.takes).is_some();
    let possible: Vec<&Login> = OPTIONS.iter().filter(is_possible).collect();
    match command_before(text, at, &possible)?.takes {
        OptionValue::Cookies => cookies(text, start),
        takes => secret(takes),
    }
}

/// The length of the separator between two items of a list, as in `["redis-cli", "-a", "…"]`,
/// without the quotation mark of the second one.
fn between_items(rest: &[u8]) -> usize {
    let slashes = run(&rest[..rest.len().min(8)], |byte| byte == b'\\');
    let Some([quote @ (b'"' | b'\''), b',', behind @ ..]) = rest.get(slashes..) else { return 0 };
    let blanks = run(&behind[..behind.len().min(8)], |byte| byte == b' ');
    let is_item = behind[blanks..].iter().find(|byte| **byte != b'\\') == Some(quote);
    if is_item { slashes + 2 + blanks } else { 0 }
}

/// The letter of the option whose trigger is at `at`, and the offset after it.
fn letter_at(text: &[u8], at: usize) -> Option<(u8, usize)> {
    /// Options without a value, which may precede one with a value in the same word.
    const PLAIN: &[u8] = b"sSfkLviIgNO#46";
    let rest = &text[at..];
    if rest[0] == b'-' {
        let length = "-user".len();
        let is_long = matches!(rest.get(length), Some(b' ' | b'='));
        return is_long.then_some((b'u', at + length));
    }
    let is_single = matches!(rest.get(3), Some(b' ' | b'=' | b'"' | b'\''));
    let plain = if is_single { 0 } else { run(&rest[2..], |byte| PLAIN.contains(&byte)) };
    let letter = *rest.get(2 + plain)?;
    let is_known = OPTIONS.iter().any(|login| login.letter == letter);
    is_known.then_some((letter, at + 3 + plain))
}

/// The value at `start`, up to its closing quotation mark or the next space.
fn value_at(text: &[u8], start: usize, quote: Option<u8>) -> Option<&[u8]> {
    let rest = text.get(start..text.len().min(start + VALUE_BYTES_MAX))?;
    let length = match quote {
        // Without a closing quotation mark it ends with the line: a title may be cut there.
        Some(quote) => memchr2(quote, b'\n', rest).unwrap_or(rest.len()),
        None => run(rest, |byte| !byte.is_ascii_whitespace() && !b"\"'`\\;|&)".contains(&byte)),
    };
    (length < VALUE_BYTES_MAX).then(|| &rest[..length])
}

/// The part after the user name and the separator.
fn behind_sign(text: &[u8], start: usize, quote: Option<u8>, sign: u8) -> Option<Found> {
    let value = value_at(text, start, quote)?;
    let at = memchr(sign, value)?;
    let password = &value[at + 1..];
    let plausible = at > 0
        && !is_placeholder(value)
        && !is_placeholder(password)
        && !password.starts_with(b"//");
    let (start, end) = (start + at + 1, start + value.len());
    plausible.then_some(Found { start, end, rule: Kind::Password.rule() })
}

fn password(text: &[u8], start: usize, quote: Option<u8>) -> Option<Found> {
    const BYTES_MIN: usize = 3;
    let value = value_at(text, start, quote)?;
    let plausible = value.len() >= BYTES_MIN && value[0] != b'-' && !is_placeholder(value);
    plausible.then_some(Found { start, end: start + value.len(), rule: Kind::Password.rule() })
}

/// The option whose command precedes `at`. A command may have several lines.
fn command_before<'a>(text: &[u8], at: usize, options: &[&'a Login]) -> Option<&'a Login> {
    if options.is_empty() {
        return None;
    }
    let before = &text[at.saturating_sub(BEFORE_BYTES_MAX)..at];
    work::count(before.len());
    let mut lines = before.rsplit(|&byte| byte == b'\n');
    let last = lines.next().unwrap_or_default();
    let more = lines.take_while(|line| line.ends_with(b"\\"));
    std::iter::once(last)
        .chain(more)
        .find_map(|line| {
            word_starts(line).find_map(|at| options.iter().find(|login| login.is_at(&line[at..])))
        })
        .copied()
}

/// The starts of the words of a line, also after the minus of a diff and an escaped line break.
fn word_starts(line: &[u8]) -> impl Iterator<Item = usize> {
    let is_start = |at: usize| match line[..at] {
        [] | [b'-'] | [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., before] => !in_word(before),
    };
    (0..line.len()).filter(move |&at| in_word(line[at]) && is_start(at))
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

impl Login {
    /// Whether one of the commands is here, in any letter case.
    fn is_at(&self, rest: &[u8]) -> bool {
        self.commands.split(',').any(|command| {
            let command = command.as_bytes();
            let behind = rest.get(command.len()).copied().unwrap_or(b' ');
            rest[0].eq_ignore_ascii_case(&command[0])
                && rest
                    .get(..command.len())
                    .is_some_and(|given| given.eq_ignore_ascii_case(command))
                && !in_word(behind)
                && behind != b':'
        })
    }
}

/// The password of `openssl … -passin pass:…`.
pub(super) fn openssl_pass(text: &[u8], at: usize) -> Option<Found> {
    let start = at + 1 + memchr(b':', &text[at..text.len().min(at + 16)])?;
    password(text, start, None)
}

/// A password that a shell pipes to a command: `echo me:… | chpasswd`, `echo … | sudo -S`, `printf
/// '%s' … | docker login --password-stdin`.
pub(super) fn piped(text: &[u8], at: usize) -> Option<Found> {
    let line = text[..at].iter().rev().take(BEFORE_BYTES_MAX).take_while(|byte| **byte != b'\n');
    let line = &text[at - line.count()..at];
    let pipe = memrchr(b'|', line)?;
    let says: [&[u8]; 3] = [b"echo ", b"printf '%s' ", b"printf "];
    let echo =
        says.iter().find_map(|says| Some(memmem::rfind(&line[..pipe], says)? + says.len()))?;
    let fed = &line[echo..pipe];
    let is_login = text[at..].get(..2).is_some_and(|word| word.eq_ignore_ascii_case(b"ch"));
    let skipped = match is_login {
        true => memchr(b':', fed)? + 1,
        false => run(fed, |byte| b" -ne\"'\\".contains(&byte)),
    };
    let secret = &fed[skipped..];
    let length = run(secret, |byte| !byte.is_ascii_whitespace() && !b"\"'\\".contains(&byte));
    let start = at - line.len() + echo + skipped;
    let plausible = length >= 3 && !is_placeholder(&secret[..length]);
    plausible.then_some(Found { start, end: start + length, rule: Kind::Password.rule() })
}

/// The password among the arguments of a command: `htpasswd -b FILE USER …`.
pub(super) fn argument(text: &[u8], at: usize) -> Option<Found> {
    let rest = &text[at..text.len().min(at + VALUE_BYTES_MAX)];
    let line = &rest[..run(rest, |byte| !b"\n;|&<>".contains(&byte))];
    if line.len() == VALUE_BYTES_MAX {
        return None;
    }
    let mut words = line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let command: Vec<&[u8]> = words.by_ref().take(2).collect();
    let [command, verb] = command[..] else { return None };
    let given: Vec<&[u8]> = words.collect();
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let last_if = |takes_password: bool| given.last().copied().filter(|_| takes_password);
    let after = |count: usize| given.get(count).copied();
    let word = if is(command, "htpasswd") {
        last_if(verb.starts_with(b"-") && verb.contains(&b'b') && given.len() > 1)
    } else if is(command, "rabbitmqctl") {
        let verbs = ["add_user", "change_password", "authenticate_user"];
        last_if(verbs.iter().any(|name| is(verb, name)) && given.len() > 1)
    } else if is(command, "vault") {
        after(0).filter(|word| word.len() >= 16)
    } else if is(command, "wpa_passphrase") {
        after(0)
    } else if is(command, "mc") {
        // mc alias set NAME URL ACCESS SECRET, mc config host add NAME URL ACCESS SECRET
        after(if is(verb, "config") { 5 } else { 4 })
    } else if is(verb, "user") {
        after(1).filter(|word| !word.starts_with(b"/"))
    } else {
        let is_login =
            given.iter().any(|word| word.get(..6).is_some_and(|word| is(word, "/user:")));
        let is_password = |word: &&[u8]| !b"/\\".contains(&word[0]) && !word.ends_with(b":");
        given.iter().copied().find(is_password).filter(|_| is_login)
    }?;
    let start = at + (word.as_ptr() as usize - line.as_ptr() as usize);
    let quotes = usize::from(matches!(word[0], b'"' | b'\''));
    let value = &word[quotes..];
    let value = &value[..run(value, |byte| !b"\"'\\,".contains(&byte))];
    let plausible = value.len() >= 3 && value[0] != b'-' && !is_placeholder(value);
    let start = start + quotes;
    plausible.then_some(Found { start, end: start + value.len(), rule: Kind::Password.rule() })
}

/// The value of a workflow command: `::add-mask::…`, `::set-output name=token::…`,
/// `##vso[task.setvariable variable=password]…`.
pub(super) fn ci_command(text: &[u8], at: usize) -> Option<Found> {
    let rest = &text[at..text.len().min(at + VALUE_BYTES_MAX)];
    let line = &rest[..run(rest, |byte| !b"\n\"'`".contains(&byte))];
    let name = memchr(b'=', line);
    let behind = |sign: &[u8]| memmem::rfind(line, sign).map(|at| at + sign.len());
    let (value, is_named) = match name {
        Some(name) => {
            let word = &line[name + 1..];
            let word = &word[..run(word, in_word)];
            let value = if line.starts_with(b"##") { behind(b"]")? } else { behind(b"::")? };
            (value, kind_of(word).is_some() || memmem::find(line, b"issecret=true").is_some())
        }
        None => (behind(b"::")?, true),
    };
    let secret = line[value..].trim_ascii_end();
    let plausible = is_named && secret.len() >= 3 && !is_placeholder(secret);
    let start = at + value;
    plausible.then_some(Found { start, end: start + secret.len(), rule: Kind::Password.rule() })
}

/// The value of `kubectl create secret … --from-literal=NAME=…`.
pub(super) fn from_literal(text: &[u8], at: usize) -> Option<Found> {
    let rest = &text[at..text.len().min(at + VALUE_BYTES_MAX)];
    let word = &rest["--from-literal".len()..];
    let sign = memchr(b'=', word.get(1..)?)? + 2;
    let start = at + "--from-literal".len() + sign;
    let found = password(text, start, None)?;
    text[found.start..found.end].iter().any(u8::is_ascii_digit).then_some(found)
}

/// The password that is typed at the prompt of redis-cli, perhaps after a user: `6379> AUTH …`.
pub(super) fn redis_auth(text: &[u8], at: usize) -> Option<Found> {
    let start = at + "> auth ".len();
    let rest = &text[start..text.len().min(start + VALUE_BYTES_MAX)];
    let line = rest[..run(rest, |byte| !b"\n\r\\".contains(&byte))].trim_ascii_end();
    let user = line.iter().position(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
    let is_last = !line[user..].iter().any(u8::is_ascii_whitespace);
    let is_prompt = at > 0 && text[at - 1].is_ascii_digit() && line.len() < VALUE_BYTES_MAX;
    if is_prompt && is_last { password(text, start + user, None) } else { None }
}

/// The password of `jdbc:oracle:thin:me/…@database`.
pub(super) fn oracle_url(text: &[u8], at: usize) -> Option<Found> {
    slash_password(text, at + "oracle:thin:".len())
}

/// The password of `sqlplus me/…@database`.
pub(super) fn sqlplus(text: &[u8], at: usize) -> Option<Found> {
    slash_password(text, at + "sqlplus ".len())
}

/// The password of `me/…@`.
fn slash_password(text: &[u8], start: usize) -> Option<Found> {
    let rest = text.get(start..text.len().min(start + VALUE_BYTES_MAX))?;
    let flags = run(rest, |byte| !matches!(byte, b'/' | b'\n'));
    let secret = rest.get(flags + 1..)?;
    let length = run(secret, |byte| !byte.is_ascii_whitespace() && byte != b'@');
    let plausible = secret.get(length) == Some(&b'@') && is_spoken_secret(&secret[..length], true);
    let start = start + flags + 1;
    plausible.then_some(Found { start, end: start + length, rule: Kind::Password.rule() })
}
