// Icons for buttons, and a mark for each kind of memory. Marks differ by
// its shape and not by its colour alone.
import { s } from "./dom.js";

const LINES = {
  feed: "M3 4h10M3 8h10M3 12h6",
  sessions: "M4 2.5v11M4 4.5h8M4 8h6M4 11.5h8",
  stats: "M3 13V8.5M6.5 13V5M10 13V9.5M13.5 13V3",
  context: "M5 2.5H3v11h2M11 2.5h2v11h-2M6.5 6h3M6.5 10h3",
  replay: "M3 8a5 5 0 1 0 1.6-3.7M4.5 1.8v2.9h2.9",
  settings: "M2.5 5h5M11.5 5h2M2.5 11h2M8.5 11h5M9.5 3.2v3.6M6.5 9.2v3.6",
  compact: "M3 3.5h10M3 6.5h10M3 9.5h10M3 12.5h10",
  projects: "M2.5 4h4l1.5 2h5.5v7h-11z",
  decisions: "M8 2.8l5.5 9.9h-11z",
  events: "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.5 3.5",
  download: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  log: "M3 3.5h10v3H3zM3 9.5h10v3H3zM5.2 5h.1M5.2 11h.1",
  write: "M8 3v10M3 8h10",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.6v1.2M8 13.2v1.2M1.6 8h1.2M13.2 8h1.2M3.5 3.5l.8.8M11.7 11.7l.8.8M3.5 12.5l.8-.8M11.7 4.3l.8-.8",
  moon: "M13 9.6A5.4 5.4 0 0 1 6.4 3a5.4 5.4 0 1 0 6.6 6.6z",
  system: "M2.5 3.5h11v7h-11zM6 13h4M8 10.5V13",
  help: "M6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.4M8 11.8v.1",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h7v8h-7zM10.5 5.5v-3h-7v8h2",
  forget: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4",
  edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7L11.3 7",
  pin: "M6 2.5h4l-.5 4 2 2.5h-7l2-2.5zM8 9v4.5",
  link: "M6.5 9.5l3-3M7 4.8l1.4-1.4a2.6 2.6 0 0 1 3.7 3.7L10.7 8.5M9 11.2l-1.4 1.4a2.6 2.6 0 0 1-3.7-3.7L5.3 7.5",
  back: "M9.5 3.5L5 8l4.5 4.5",
  next: "M6.5 3.5L11 8l-4.5 4.5",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  check: "M3.5 8.5l3 3 6-7",
  alert: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.3v.1",
};

const SHAPES = {
  bugfix: () => s("circle", { cx: 8, cy: 8, r: 4 }),
  feature: () => s("path", { d: "M8 3l5 5-5 5-5-5z" }),
  refactor: () => s("path", { class: "open", d: "M11.9 8A3.9 3.9 0 1 1 9.6 4.4" }),
  change: () => s("rect", { x: 4, y: 4, width: 8, height: 8, rx: 1.5 }),
  discovery: () => s("circle", { class: "open", cx: 8, cy: 8, r: 3.6 }),
  decision: () => s("path", { d: "M8 3.2l5 9.2H3z" }),
  rule: () => s("path", { d: "M4 3h8v10l-4-2.6L4 13z" }),
  security: () => s("path", { d: "M8 2.8l4.6 2v3.4c0 2.4-1.9 4.2-4.6 5-2.7-.8-4.6-2.6-4.6-5V4.8z" }),
  prompt: () => s("path", { class: "open", d: "M5.8 4.2L9.8 8l-4 3.8" }),
  summary: () => s("path", { class: "open", d: "M3.5 5h9M3.5 8h9M3.5 11h5.5" }),
  other: () => s("rect", { class: "open", x: 4.6, y: 4.6, width: 6.8, height: 6.8, rx: 1.2 }),
};

/** An icon for a button. Screen readers skip it and read the label of the button. */
export function icon(name) {
  return s(
    "svg",
    { class: "sign", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    s("path", { d: LINES[name] }),
  );
}

/** The mark for this kind and type of memory. */
export function family(kind, type) {
  if (kind !== "observation") return kind;
  if (/^(security|sensitive)/.test(type ?? "")) return "security";
  return Object.hasOwn(SHAPES, type ?? "") ? type : "other";
}

/** The mark of a memory. */
export function mark(kind, type) {
  const name = family(kind, type);
  return s(
    "svg",
    { class: `mark is-${name}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    SHAPES[name](),
  );
}
