// Formats dates, numbers and money for people.

const DAY = 86_400_000;
/** The page is in English, so dates are, too. */
const LOCALE = "en-GB";
const clock = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const weekday = new Intl.DateTimeFormat(LOCALE, { weekday: "long" });
const thisYear = new Intl.DateTimeFormat(LOCALE, { weekday: "short", day: "numeric", month: "long" });
const anyYear = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "long", year: "numeric" });
const shortThisYear = new Intl.DateTimeFormat(LOCALE, { weekday: "short", day: "numeric", month: "short" });
const shortAnyYear = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", year: "numeric" });
const shortDay = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat(LOCALE, { dateStyle: "full", timeStyle: "medium" });
const plain = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** `14:32` */
export const hour = (ms) => clock.format(ms);

/** `Monday, 16 November 2026 at 14:32:10` */
export const inFull = (ms) => whole.format(ms);

/** The start of its day in local time, as a number that can be compared. */
export function dayOf(ms) {
  return new Date(ms).setHours(0, 0, 0, 0);
}

/** `2026-11-16`, in local time. */
export function isoDay(date) {
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** `Today`, `Yesterday`, `Thursday`, `Mon 2 November`, `2 November 2025` */
export function dayName(ms, now = Date.now(), formats = [thisYear, anyYear]) {
  const days = Math.round((dayOf(now) - dayOf(ms)) / DAY);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days > 1 && days < 7) return weekday.format(ms);
  const isThisYear = new Date(ms).getFullYear() === new Date(now).getFullYear();
  return formats[isThisYear ? 0 : 1].format(ms);
}

/** `13 Nov` next to a name without a date; nothing next to a date. */
export const dayDate = (ms, now = Date.now()) => (dayOf(now) - dayOf(ms) < 6.5 * DAY ? shortDay.format(ms) : "");

/** `just now`, `4 min ago`, `3 h ago`, `Yesterday, 14:32`, `Mon 2 Nov, 14:32` */
export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, (now - ms) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 3_600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (dayOf(now) === dayOf(ms)) return `${Math.round(seconds / 3_600)} h ago`;
  return `${dayName(ms, now, [shortThisYear, shortAnyYear])}, ${hour(ms)}`;
}

/** `310 ms`, `40 s`, `12 min`, `3 h 20 min`, `2 days` */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}

/** `12,345` */
export const count = (number) => plain.format(number ?? 0);

/** `12.3K` */
export const brief = (number) =>
  Math.abs(number ?? 0) < 10_000 ? plain.format(number ?? 0) : short.format(number);

/** `1 event`, `2 events` */
export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

/** `$0.0012`, `$1.20`: amounts below a cent keep their significant digits. */
export function money(dollars) {
  if (!dollars) return "$0";
  if (dollars >= 0.01) return `$${dollars.toFixed(2)}`;
  return `$${dollars.toFixed(4)}`;
}

/** `1.2 MB` */
export function bytes(number) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let value = number ?? 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

/** The end of a path, which distinguishes files. */
export function tail(path, parts = 2) {
  const names = path.split("/").filter(Boolean);
  return names.length > parts ? `…/${names.slice(-parts).join("/")}` : path;
}

/** The first words, cut where a word ends. */
export function cut(text, length) {
  const line = (text ?? "").replace(/\s+/g, " ").trim();
  if (line.length <= length) return line;
  const start = line.slice(0, length);
  const space = start.lastIndexOf(" ");
  return `${space > length / 2 ? start.slice(0, space) : start}…`;
}

/** Enough of a prompt version to distinguish it from others. The rules put their own name before it. */
export const version = (prompt) => (prompt ?? "").replace(/^extract-\d+-/, "").slice(0, 8);

/** The next steps without their own label, because the page shows a label. */
export const nextSteps = (steps) => (steps ?? "").trim().replace(/^next( steps?)?:\s*/i, "");

/** The next steps on one line; empty if the summary names none. */
export function openEnd(steps) {
  const text = nextSteps(steps).replace(/\s*\n\s*/g, "; ");
  return /^(nothing|none|n\/a|-)[\s.!]*$/i.test(text) ? "" : text;
}

/** A message of the worker as a sentence. */
export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
