// Filters of a list. They are in the address only, so that they can be shared, bookmarked and undone.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { cut, isoDay, tail } from "./format.js";
import { icon } from "./icons.js";
import { go, withQuery } from "./router.js";
import { projects } from "./sidebar.js";

const NAMES = ["q", "project", "kind", "type", "concept", "file", "since", "until", "session", "order"];
const KINDS = [
  ["", "Everything"],
  ["observation", "Observations"],
  ["summary", "Summaries"],
  ["prompt", "Prompts"],
];
const SPANS = [
  ["", "Any time"],
  ["today", "Today"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["365d", "Last year"],
  ["between", "Between…"],
];
const ORDERS = [
  ["", "Best first"],
  ["date_desc", "Newest first"],
  ["date_asc", "Oldest first"],
];

let types;

/** The filters of an address. */
export function read(query) {
  return Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
}

/** Whether anything is left out by them. */
export const isNarrow = (filters) => NAMES.some((name) => name !== "order" && filters[name]);

/** Whether words have to be looked up. */
export const isSearch = (filters) => Boolean(filters.q);

/** What to ask the feed for. */
export function forFeed(filters) {
  const { project, session, type, kind: kinds, concept: concepts, file: files, until } = filters;
  return { project, session, type, kinds, concepts, files, since: moment(filters.since), until };
}

/** What to ask the index for. */
export function forSearch(filters) {
  const kinds = { observation: "observations", summary: "sessions", prompt: "prompts" };
  return {
    query: filters.q,
    typing: true,
    type: filters.type ? "observations" : kinds[filters.kind],
    obs_type: filters.type,
    concepts: filters.concept,
    files: filters.file,
    project: filters.project,
    session: filters.session,
    dateStart: moment(filters.since),
    dateEnd: filters.until,
    orderBy: filters.order,
    rows: false,
  };
}

/** Whether something that has just happened belongs into the list. */
export function passes(filters, memory) {
  if (isSearch(filters) || filters.until) return false;
  const is = (wanted, found) => !wanted || wanted === found;
  return (
    is(filters.project, memory.project) &&
    is(filters.session, memory.session) &&
    is(filters.kind, memory.kind) &&
    is(filters.type, memory.type) &&
    (!filters.concept || memory.concepts?.includes(filters.concept)) &&
    !filters.file
  );
}

function moment(since) {
  return since === "today" ? isoDay(new Date()) : since;
}

/** The bar above a list. */
export class Bar {
  constructor() {
    this.element = h("div", { class: "filters", role: "group", "aria-label": "Filters" });
    this.isBetween = false;
    this.isMore = false;
  }

  draw(filters) {
    this.filters = filters;
    if (!types) {
      types = { types: [], concepts: [] };
      get("/api/types")
        .then((known) => {
          types = known;
          this.draw(this.filters);
        })
        .catch(() => (types = undefined));
    }
    // Keep the focus on the control that was used.
    const focused = this.element.contains(document.activeElement) && document.activeElement.name;
    fill(
      this.element,
      this.#kinds(filters),
      h("div", { class: "choices" }, this.#choices(filters)),
      this.isMore && this.#more(filters),
      this.#chips(filters),
    );
    if (focused) this.element.querySelector(`[name="${focused}"]`)?.focus();
  }

  /** What is asked for more rarely. */
  #more(filters) {
    const concepts = types.concepts.map(({ id }) => id);
    if (filters.concept && !concepts.includes(filters.concept)) concepts.push(filters.concept);
    return h(
      "div",
      { class: "more" },
      choice(
        "concept",
        "Concept",
        [["", "Any concept"], ...concepts.map((id) => [id, id])],
        filters.concept,
        (concept) => go(withQuery({ concept })),
      ),
      words("file", "File or folder", filters.file),
      words("session", "Session", filters.session),
    );
  }

  #kinds(filters) {
    return h(
      "ul",
      { class: "tabs", "aria-label": "Kind" },
      KINDS.map(([kind, text]) =>
        h(
          "li",
          null,
          h(
            "a",
            {
              href: withQuery({ kind, ...(kind === "observation" || { type: "" }) }),
              "aria-current": filters.kind === kind ? "true" : undefined,
            },
            text,
          ),
        ),
      ),
    );
  }

  #choices(filters) {
    const ids = types.types.map(({ id }) => id);
    if (filters.type && !ids.includes(filters.type)) ids.push(filters.type);
    const names = projects.map(({ project }) => project);
    if (filters.project && !names.includes(filters.project)) names.push(filters.project);
    const isKnown = SPANS.some(([span]) => span === filters.since);
    const isBetween = this.isBetween || Boolean(filters.until) || !isKnown;
    return [
      choice(
        "type",
        "Type",
        [["", "Any type"], ...ids.map((id) => [id, id.replaceAll("_", " ")])],
        filters.type,
        (type) => go(withQuery({ type, ...(type && { kind: "observation" }) })),
      ),
      choice("span", "When", SPANS, isBetween ? "between" : filters.since, (since) => {
        this.isBetween = since === "between";
        if (this.isBetween) this.draw(this.filters);
        else go(withQuery({ since, until: "" }));
      }),
      isBetween && [day("since", "From", filters.since), day("until", "To", filters.until)],
      h(
        "span",
        { class: "narrow" },
        choice(
          "project",
          "Project",
          [["", "All projects"], ...names.map((name) => [name, cut(name, 40)])],
          filters.project,
          (project) => go(withQuery({ project })),
        ),
      ),
      h(
        "button",
        {
          type: "button",
          class: "icon",
          name: "more",
          "aria-label": "More filters",
          "aria-expanded": String(this.isMore),
          on: {
            click: () => {
              this.isMore = !this.isMore;
              this.draw(this.filters);
            },
          },
        },
        icon("settings"),
      ),
      filters.q && choice("order", "Order", ORDERS, filters.order, (order) => go(withQuery({ order }))),
    ];
  }

  #chips(filters) {
    const chip = (name, text) =>
      filters[name] &&
      h(
        "li",
        null,
        h(
          "a",
          { class: "chip", href: withQuery({ [name]: "" }), "aria-label": `Remove the filter ${text}` },
          text,
          icon("close"),
        ),
      );
    const list = [
      chip("project", filters.project),
      chip("session", `session ${filters.session.slice(0, 8)}`),
      chip("concept", filters.concept),
      chip("file", tail(filters.file)),
    ].filter(Boolean);
    return list.length > 0 && h("ul", { class: "chips" }, list);
  }
}

function choice(name, text, options, value, chosen) {
  const select = h(
    "select",
    { name, "aria-label": text, class: value && "is-set", on: { change: () => chosen(select.value) } },
    options.map(([option, shown]) => h("option", { value: option, selected: option === value }, shown)),
  );
  return select;
}

function words(name, label, value) {
  const input = h("input", {
    name,
    value,
    "aria-label": label,
    placeholder: label,
    on: { change: () => go(withQuery({ [name]: input.value.trim() })) },
  });
  return input;
}

function day(name, text, value) {
  const input = h("input", {
    type: "date",
    name,
    "aria-label": text,
    value: /^\d{4}-\d\d-\d\d/.test(value) ? value.slice(0, 10) : "",
    on: { change: () => go(withQuery({ [name]: input.value })) },
  });
  return input;
}
