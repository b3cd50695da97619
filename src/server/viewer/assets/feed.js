// The feed: prompts, observations and summaries, live; and search results.
import { get } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { Bar, forFeed, forSearch, hostNames, isNarrow, isSearch, knowValues, passes, read } from "./filters.js";
import { count, many, sentence } from "./format.js";
import { empty, trouble, waiting, withQuery } from "./router.js";
import { Preview } from "./preview.js";
import { Rows, hit, item } from "./rows.js";
import { Selection } from "./selection.js";

/** The first page, and results while the user types, fill a screen. Later pages are loaded before they are visible. */
const FIRST = 25;
const PAGE = 50;
/** After a pause of this many milliseconds, the query is also searched by meaning. */
const SETTLED = 500;
const NEW = { new_prompt: "prompt", new_observation: "observation", new_summary: "summary" };

export default async function feed(main, { query }) {
  const view = new Feed(main);
  await view.show(query);
  return {
    get title() {
      return view.filters.q ? `“${view.filters.q}”` : "";
    },
    update: (next) => view.update(next),
    changed: (change) => view.changed(change),
    keys: view.selection.keys,
    returned: () => !isSearch(view.filters) && view.show(new URLSearchParams(location.search)),
    leave: () => view.leave(),
  };
}

/** The number of results. `isAll` is true if all of them are listed. */
function summed({ totalResults, isCapped, hits, nearResults }, isAll) {
  if (!totalResults && nearResults) return `No match by words, ${nearResults} by meaning`;
  return (
    many(totalResults, "match", "matches").replace(" ", isCapped ? "+ " : " ") +
    (nearResults ? ` and ${nearResults} by meaning` : "") +
    (isAll && hits.length < totalResults + (nearResults ?? 0) ? ` in ${many(hits.length, "turn")}` : "")
  );
}

/** A link to the search with words that exist. */
const suggested = ({ suggestion }) => h("a", { href: withQuery({ q: suggestion }, "/") }, suggestion);

class Feed {
  constructor(main) {
    this.bar = new Bar();
    this.now = h("ul", { class: "now", "aria-label": "Going on now" });
    this.status = h("p", { class: "search-status", role: "status" });
    this.list = h("div");
    this.selection = new Selection(this.list);
    this.preview = new Preview(this.list);
    this.end = h("div", { class: "end" });
    this.pill = h("button", {
      class: "pill",
      type: "button",
      hidden: true,
      on: { click: () => this.#top() },
    });
    this.going = new Map();
    this.missed = 0;
    this.watch = new IntersectionObserver(([seen]) => seen.isIntersecting && this.#more(), {
      rootMargin: "600px",
    });
    this.onScroll = () => scrollY < 80 && this.#seen();
    addEventListener("scroll", this.onScroll, { passive: true });
    main.classList.add("with-preview");
    main.append(
      h(
        "div",
        null,
        h("h1", { class: "hidden" }, "Feed"),
        this.bar.element,
        this.status,
        this.now,
        this.pill,
        this.list,
        this.end,
        this.selection.bar,
      ),
      this.preview.element,
    );
  }

  leave() {
    clearTimeout(this.settling);
    this.preview.leave();
    this.watch.disconnect();
    this.asking?.abort();
    removeEventListener("scroll", this.onScroll);
  }

  /** The address changed: the old list stays until the new one is loaded. */
  async update(query) {
    scrollTo(0, 0);
    this.selection.clear();
    document.title = query.get("q") ? `“${query.get("q")}” · claude-mem` : "claude-mem";
    const slow = setTimeout(() => this.list.classList.add("is-old"), 200);
    await this.show(query).catch((error) => error.name !== "AbortError" && fill(this.list, trouble(error)));
    clearTimeout(slow);
    this.list.classList.toggle("is-old", Boolean(this.isKept));
  }

  async show(query, isTyping = document.activeElement?.id === "query") {
    clearTimeout(this.settling);
    this.asking?.abort();
    this.asking = new AbortController();
    this.filters = read(query);
    this.bar.draw(this.filters);
    const filters = this.filters;
    const isFound = isSearch(filters);
    const received = (this.meanwhile = []);
    const done = () => this.meanwhile === received && (this.meanwhile = undefined);
    const [first] = await Promise.all([
      this.#first(filters, isTyping),
      knowValues().catch(() => {}),
    ]).catch((error) => {
      done();
      throw error;
    });
    const rows = new Rows({
      words: filters.q,
      project: filters.project,
      session: filters.session,
      hosts: hostNames(),
      isByDay: !isFound || filters.order === "date_desc",
      // Where prompts are left out, every row shows its own project and session.
      isByTurn: !isFound && ![filters.kind, filters.type, filters.concept, filters.file].some(Boolean),
    });
    rows.append(first.items);
    // A partly typed word may match nothing: keep the previous list.
    const isInBox = document.activeElement?.id === "query";
    this.isKept = isFound && isInBox && !rows.size && (this.rows?.size ?? 0) > 0;
    this.#tell(first, isFound);
    if (!this.isKept) {
      this.rows = rows;
      const focused = this.list.contains(document.activeElement) && document.activeElement.closest("[data-row]");
      fill(this.list, rows.size ? rows.element : this.#nothing(first));
      this.preview.first();
      if (focused) this.#focus(focused.dataset.row);
    }
    this.next = first.next;
    // Events during the request may or may not be in the response.
    done();
    for (const change of received) this.changed(change);
    this.#seen();
    this.#going();
    // Observe it again, because a sentinel that stays visible is not reported twice.
    this.watch.disconnect();
    this.watch.observe(this.end);
    if (isFound && isTyping) this.settling = setTimeout(() => this.#settle(query), SETTLED);
  }

  /** After a pause in typing: searches by words and meaning, unless the focus is already on a result. */
  #settle(query) {
    if (document.activeElement?.id === "query") this.show(query, false).catch(() => {});
  }

  /** Focuses a row again, or the first one: results that arrive late replace the rows. */
  #focus(name) {
    const row = this.list.querySelector(`[data-row="${CSS.escape(name)}"]`) ?? this.list.querySelector("[data-row]");
    row?.focus({ preventScroll: true });
  }

  /** The first results. */
  #first(filters, isTyping) {
    this.isTyping = isTyping;
    return this.#ask(filters, isSearch(filters) ? 0 : undefined);
  }

  async #ask(filters, next) {
    const { signal } = this.asking;
    if (!isSearch(filters)) {
      const { items, nextBefore } = await get(
        "/api/feed",
        { ...forFeed(filters), limit: next ? PAGE : FIRST, before: next },
        signal,
      );
      return { items: items.map((row) => item(row)), next: nextBefore };
    }
    const found = await get(
      "/api/search",
      { ...forSearch(filters, this.isTyping), limit: this.isTyping && !next ? FIRST : PAGE, offset: next || "" },
      signal,
    );
    const behind = (next ?? 0) + found.hits.length;
    return {
      items: found.hits.map(hit),
      next: found.hasMore && found.hits.length ? behind : null,
      total: summed(found, !next && !found.hasMore),
      hint: found.hint,
      suggestion: found.suggestion,
    };
  }

  async #more() {
    if (this.next === null || this.next === undefined || this.isAsking) return;
    this.isAsking = true;
    const { rows, filters } = this;
    fill(this.end, waiting());
    try {
      const more = await this.#ask(filters, this.next);
      if (rows !== this.rows) return;
      rows.append(more.items);
      this.next = more.next;
      fill(
        this.end,
        this.next === null && rows.size > PAGE && h("p", { class: "hint" }, "End of results"),
      );
    } catch (error) {
      if (error.name !== "AbortError") fill(this.end, trouble(error));
    } finally {
      this.isAsking = false;
      this.watch.unobserve(this.end);
      this.watch.observe(this.end);
    }
  }

  #tell(first, isFound) {
    fill(this.end);
    const hint = first.items.length > 0 && !first.suggestion && first.hint;
    fill(
      this.status,
      isFound && first.items.length > 0 && first.total,
      // The completions of a single letter are not looked up.
      this.isKept && this.filters.q.trim().length > 1 && h("b", null, `No results for “${this.filters.q}”`),
      first.suggestion && [" ", h("span", { class: "hint" }, "Did you mean ", suggested(first), "?")],
      hint && [" ", h("span", { class: "hint" }, prose(sentence(hint)))],
    );
    this.status.hidden = !this.status.childNodes.length;
  }

  #nothing(first) {
    if (isNarrow(this.filters)) {
      return empty(
        this.filters.q ? `No results for “${this.filters.q}”` : "Nothing here",
        prose(sentence((!first.suggestion && first.hint) || "try fewer filters, or other words")),
        h("a", { class: "button", href: "/" }, "Show everything"),
      );
    }
    return empty(
      "No memories yet",
      "Open Claude Code in a project and work. Prompts appear here at once, observations when the turn is over.",
      h("p", { class: "hint" }, prose("If nothing appears, see `claude-mem status`.")),
    );
  }

  changed(change) {
    if (this.meanwhile && (NEW[change.type] || change.type === "forgotten")) this.meanwhile.push(change);
    if (change.type === "observation_queued") this.#queue(change);
    if (change.type === "forgotten") this.show(new URLSearchParams(location.search)).catch(() => {});
    const kind = NEW[change.type];
    if (!kind || !this.rows) return;
    const memory = item(change[kind], kind);
    if (kind !== "prompt") this.#done(memory.session);
    // Old events of other machines are loaded when the user scrolls there.
    const isBehind = this.next && memory.at < this.rows.oldest;
    if (isBehind || !passes(this.filters, memory)) return;
    if (!this.rows.size) fill(this.list, this.rows.element);
    if (this.rows.insert(memory) && scrollY > 160) {
      this.missed += 1;
      this.#showPill();
    }
  }

  #top() {
    scrollTo({
      top: 0,
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
    this.#seen();
  }

  #seen() {
    this.missed = 0;
    this.pill.hidden = true;
  }

  #showPill() {
    this.pill.hidden = false;
    fill(this.pill, `↑ ${count(this.missed)} new`);
  }

  /** Tool uses that are not distilled yet. */
  #queue({ content_session_id: session, project, tool }) {
    const going = this.going.get(session) ?? { project, tools: new Map() };
    going.tools.set(tool, (going.tools.get(tool) ?? 0) + 1);
    this.going.set(session, going);
    this.#going();
  }

  #done(session) {
    if (this.going.delete(session)) this.#going();
  }

  #going() {
    const { project, session: wanted } = this.filters;
    const all = isSearch(this.filters) ? [] : [...this.going];
    const shown = all.filter(
      ([session, { project: name }]) => (!project || project === name) && (!wanted || wanted === session),
    );
    fill(
      this.now,
      shown.map(([session, { project: name, tools }]) =>
        h(
          "li",
          null,
          h("span", { class: "dot busy" }),
          h("a", { href: `/s/${encodeURIComponent(session)}` }, name),
          h(
            "span",
            { class: "tools" },
            [...tools].map(([tool, times]) =>
              h("span", { class: "tool" }, tool, times > 1 && h("b", null, ` ×${times}`)),
            ),
          ),
        ),
      ),
    );
    this.now.hidden = !shown.length;
  }
}
