// What a generation changed, or would change: gone, new and reworded observations.
import { get, post } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { icon, mark } from "./icons.js";
import { empty, reload, withQuery } from "./router.js";
import { complain, toast } from "./toast.js";

/** Pairs of observations before and after, grouped by the kind of change. */
const TYPES = [
  ["", "All", () => true],
  ["reworded", "Reworded", ([before, after]) => before && after],
  ["gone", "Gone", ([, after]) => !after],
  ["new", "New", ([before]) => !before],
];
/** With more new words than this, the text counts as rewritten, and no word is marked. */
const NEW_WORDS_MAX = 0.6;

export default async function diff(main, { wanted, query }) {
  const [found, { items }] = await Promise.all([get(`/api/replays/${wanted}/diff`), get("/api/replays")]);
  const own = items.find(({ generation }) => generation === found.generation);
  const adopt = async () => {
    try {
      await post(`/api/replays/${wanted}/adopt`);
      toast(`Generation ${wanted} is now current`);
      reload();
    } catch (error) {
      complain(error);
    }
  };
  const canAdopt = own && own.is_finished && !own.is_current;
  main.append(
    h(
      "header",
      { class: "head" },
      h(
        "p",
        { class: "crumbs" },
        h("a", { href: "/replay" }, "Replay"),
        icon("next"),
        `Generation ${wanted}`,
      ),
      h("h1", null, `What generation ${wanted} ${canAdopt ? "would change" : "changed"}`),
      h(
        "p",
        { class: "meta" },
        h("span", { class: "gone" }, `${count(found.removed.length)} gone`),
        h("span", { class: "new" }, `${count(found.added.length)} new`),
        h("span", null, `${count(found.changed.length)} reworded`),
        h("span", null, `${count(found.same)} the same`),
      ),
      canAdopt &&
        h(
          "p",
          { class: "actions" },
          h(
            "button",
            { class: "button primary", type: "button", on: { click: adopt } },
            "Switch to this generation",
          ),
        ),
    ),
  );
  const all = [
    ...found.changed.map(({ before, after }) => [before, after]),
    ...found.removed.map((gone) => [gone, null]),
    ...found.added.map((added) => [null, added]),
  ];
  all.sort(([a, b], [c, d]) => ((a ?? b).created_at ?? "").localeCompare((c ?? d).created_at ?? ""));
  if (!all.length) main.append(empty("Nothing changed", "Both generations are the same."));
  else main.append(tabs(query.get("show") ?? ""), ...pairs(all, query.get("show") ?? ""));
  return { title: `Generation ${wanted}`, up: "/replay" };
}

function tabs(chosen) {
  const tab = ([name, text]) =>
    h("li", null, h("a", { href: withQuery({ show: name }), "aria-current": name === chosen ? "true" : undefined }, text));
  return h("ul", { class: "tabs", "aria-label": "Show" }, TYPES.map(tab));
}

function pairs(all, chosen) {
  const [, , isShown] = TYPES.find(([name]) => name === chosen) ?? TYPES[0];
  const shown = all.filter(isShown);
  if (!shown.length) return [empty("None", "No observation is among these.")];
  return [
    h("p", { class: "pairs-head", "aria-hidden": "true" }, h("span", null, "Before"), h("span", null, "After")),
    h("ol", { class: "pairs" }, shown.map(pair)),
  ];
}

function pair([before, after]) {
  const side = (each, other, style) =>
    h(
      "div",
      { class: each ? `version ${other ? "reworded" : style}` : "version none" },
      each
        ? [
            h(
              "p",
              { class: "title" },
              mark("observation", each.type),
              h("span", { class: "when" }, style === "gone" ? "Before: " : "After: "),
              h("span", null, words(each.title, other?.title)),
            ),
            each.subtitle && h("p", { class: "text" }, words(each.subtitle, other?.subtitle)),
            each.narrative && h("p", { class: "text" }, words(each.narrative, other?.narrative)),
            each.facts?.length > 0 &&
              h(
                "ul",
                { class: "points" },
                each.facts.map((fact) => h("li", null, words(fact, other && (other.facts ?? []).join(" ")))),
              ),
          ]
        : h("p", { class: "hint" }, style === "gone" ? "Nothing before" : "Nothing after"),
    );
  return h("li", null, side(before, after, "gone"), side(after, before, "new"));
}

/** The text. Marks words that the other text does not have, and highlights `names`. */
function words(text, other) {
  if (!text) return "Untitled";
  const known = new Set((other ?? text).toLowerCase().match(/[\p{L}\p{N}]+/gu));
  const all = text.match(/[\p{L}\p{N}]+/gu) ?? [];
  const isOther = all.filter((word) => !known.has(word.toLowerCase())).length > all.length * NEW_WORDS_MAX;
  const isNew = (part) => !isOther && !known.has(part.toLowerCase());
  const marked = (part) =>
    part.split(/([\p{L}\p{N}]+)/gu).map((word, at) => (at % 2 && isNew(word) ? h("mark", null, word) : word));
  return text.split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? h("code", null, marked(part)) : marked(part)));
}
