// Builds elements. Recorded text becomes text nodes only: nothing here turns a string into markup, and the page's
// policy (Trusted Types) would refuse it.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children. `on` holds listeners, `data` goes to the dataset. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG elements. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false || child === "") continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces the children of an element by these. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** A time, short, with the full date as a tooltip. */
export function time(ms, text, title) {
  return h("time", { datetime: new Date(ms).toISOString(), title }, text);
}

/** Text with highlighted `names`, and with marks on the parts that match the words of a query. An excerpt may have one
 * backtick of a pair, which is left out. */
export function prose(text, query) {
  return text
    .split(/`([^`\n]+)`/)
    .map((part, at) => (at % 2 ? h("code", null, marked(part, query)) : marked(part.replaceAll("`", ""), query)));
}

function marked(text, query) {
  const words = (query ?? "").match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  if (!words.length) return [text];
  const stems = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`((?<![\\p{L}\\p{N}])(?:${stems.join("|")})[\\p{L}\\p{N}]*)`, "giu"));
  return parts.map((part, at) => (at % 2 ? h("mark", null, part) : part));
}

/** Debounces: runs the last of many calls after a pause of this length. */
export function calm(ms, run) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), ms);
  };
}
