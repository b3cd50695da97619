// Filters of a list. They are in the address only, so that they can be shared, bookmarked and undone.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { cut, isoDay, tail } from "./format.js";
import { icon } from "./icons.js";
import { go, withQuery } from "./router.js";
import { densitySwitch, hostOf } from "./rows.js";
import { projects } from "./sidebar.js";

const KINDS = [
  ["", "All"],
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

/**
 * Filters with a list of values, in the order in which they are shown. `values` are pairs of value and text, from the
 * worker's vocabulary; without values the filter is not shown. `passes` returns whether a new memory belongs in the
 * list. `feed` and `search` are the names of the parameters.
 */
const LISTS = [
  {
    name: "type",
    label: "Type",
    any: "Any type",
    values: ({ types }) => types.map(({ id }) => [id, id.replaceAll("_", " ")]),
    also: (type) => type && { kind: "observation" },
    passes: (memory, value) => memory.type === value,
    feed: "type",
    search: "obs_type",
    isAlways: true,
  },
  {
    name: "host",
    label: "Machine",
    any: "All machines",
    values: ({ hosts }) => hosts.map(({ number, name }) => [String(number), name]),
    passes: (memory, value) => String(hostOf(memory)) === value,
    feed: "host",
    search: "host",
    isAlways: true,
  },
  {
    name: "client",
    label: "Client",
    any: "All clients",
    values: ({ clients }) => clients.map((name) => [name, name]),
    passes: (memory, value) => memory.client === value,
    feed: "client",
    search: "client",
    isAlways: true,
  },
  {
    name: "concept",
    label: "Concept",
    any: "Any concept",
    values: ({ concepts }) => concepts.map(({ id }) => [id, id]),
    passes: (memory, value) => memory.concepts?.includes(value),
    feed: "concepts",
    search: "concepts",
  },
];
const NAMES = ["q", "project", "kind", "file", "since", "until", "session", "order", ...LISTS.map(({ name }) => name)];

/** The values to choose from, as the worker returned them. */
let known = { types: [], concepts: [], hosts: [], clients: [] };
let isKnown = false;
let asking;

/** The names of machines by number, if there are several. */
export const hostNames = () => Object.fromEntries(known.hosts.map(({ number, name }) => [number, name]));

/** Requests the values to choose from once, and again after a failure. */
export function knowValues() {
  asking ??= get("/api/types").then(
    (values) => {
      known = { ...known, ...values };
      isKnown = true;
    },
    (error) => {
      asking = undefined;
      throw error;
    },
  );
  return asking;
}

/** The filters of an address. */
export function read(query) {
  return Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
}

/** Whether they exclude anything. */
export const isNarrow = (filters) => NAMES.some((name) => name !== "order" && filters[name]);

/** Whether they contain words to search for. */
export const isSearch = (filters) => Boolean(filters.q);

const listed = (filters, parameter) =>
  Object.fromEntries(LISTS.map((list) => [list[parameter], filters[list.name]]));

/** The parameters of a request to the feed. */
export function forFeed(filters) {
  const { project, session, kind: kinds, file: files, until } = filters;
  return { project, session, kinds, files, since: moment(filters.since), until, ...listed(filters, "feed") };
}

/** The parameters of a search. While the user types, the last word may be incomplete, and meaning does not count. */
export function forSearch(filters, isTyping) {
  const kinds = { observation: "observations", summary: "sessions", prompt: "prompts" };
  return {
    query: filters.q,
    typing: isTyping,
    type: filters.type ? "observations" : kinds[filters.kind],
    files: filters.file,
    project: filters.project,
    session: filters.session,
    dateStart: moment(filters.since),
    dateEnd: filters.until,
    orderBy: filters.order,
    rows: false,
    ...listed(filters, "search"),
  };
}

/** Whether a new memory belongs in the list. */
export function passes(filters, memory) {
  if (isSearch(filters) || filters.until || filters.file) return false;
  const is = (wanted, found) => !wanted || wanted === found;
  return (
    is(filters.project, memory.project) &&
    is(filters.session, memory.session) &&
    is(filters.kind, memory.kind) &&
    LISTS.every((list) => !filters[list.name] || list.passes(memory, filters[list.name]))
  );
}

function moment(since) {
  return since === "today" ? isoDay(new Date()) : since;
}

/** The bar above a list. */
export class Bar {
  constructor() {
    this.element = h("div", { class: "filters", role: "group", "aria-label": "Filters" });
    this.density = densitySwitch();
    this.isBetween = false;
    this.isMore = false;
  }

  draw(filters) {
    this.filters = filters;
    if (!isKnown) knowValues().then(() => this.draw(this.filters), () => {});
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

  #lists(filters, isAlways) {
    return LISTS.filter((list) => Boolean(list.isAlways) === isAlways).map((list) => {
      const { name } = list;
      const values = list.values(known);
      if (filters[name] && !values.some(([value]) => value === filters[name]))
        values.push([filters[name], filters[name]]);
      if (!values.length) return null;
      return choice(name, list.label, [["", list.any], ...values], filters[name], (value) =>
        go(withQuery({ [name]: value, ...list.also?.(value) })),
      );
    });
  }

  #choices(filters) {
    const names = projects.map(({ project }) => project);
    if (filters.project && !names.includes(filters.project)) names.push(filters.project);
    const isSpan = SPANS.some(([span]) => span === filters.since);
    const isBetween = this.isBetween || Boolean(filters.until) || !isSpan;
    return [
      filters.q && choice("order", "Order", ORDERS, filters.order, (order) => go(withQuery({ order }))),
      this.#lists(filters, true),
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
        "span",
        { class: "tools-of-list" },
        h(
          "button",
          {
            type: "button",
            class: "icon",
            name: "more",
            title: "More filters",
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
        this.density,
      ),
    ];
  }

  /** Filters that are used less often. */
  #more(filters) {
    return h(
      "div",
      { class: "more" },
      this.#lists(filters, false),
      words("file", "File or folder", filters.file),
      words("session", "Session", filters.session),
    );
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
      chip("client", filters.client),
      chip("session", `session ${filters.session.slice(0, 8)}`),
      chip("concept", filters.concept),
      chip("file", tail(filters.file)),
      filters.project &&
        h(
          "li",
          null,
          h("a", { class: "chip go", href: `/p/${encodeURIComponent(filters.project)}` }, "Overview", icon("next")),
        ),
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
