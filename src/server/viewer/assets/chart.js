// Charts, drawn by hand: columns by day, and bars by name. Each can be read with the pointer, with the arrow keys,
// and as a table with a screen reader.
import { fill, h, s } from "./dom.js";
import { go } from "./router.js";

const HEIGHT = 132;
const FOOT = 18;
const dayShort = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** The date of a day from the worker, independent of the time zone. */
const shown = (day) => dayShort.format(Date.parse(`${day}T00:00:00Z`));

/**
 * Stacked columns by day. `series` are `{ name, key, style }`, the lowest first; `format` writes a number; `isLine`
 * draws the first of them as a line with the area below it; `link` returns the address of a day, which a click or
 * Enter opens.
 */
export function columns({ title, days, series, format, isLine = false, note, link }) {
  const total = (day) => series.reduce((sum, { key }) => sum + (day[key] ?? 0), 0);
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const plot = h("div", {
    class: link ? "plot has-days" : "plot",
    tabindex: 0,
    role: "img",
    "aria-label": `${title} by day. Use the arrow keys to read single days${link ? ", and Enter to open one" : ""}.`,
  });
  const legend =
    series.length > 1 &&
    h(
      "ul",
      { class: "legend" },
      series.map(({ name, style }) => h("li", { class: style }, name)),
    );
  const figure = h(
    "figure",
    { class: "chart" },
    h("figcaption", null, h("h2", null, title), readout),
    plot,
    legend,
    table(title, days, series, format),
  );
  let at = -1;

  function tell() {
    const day = days[at];
    if (day) {
      const parts =
        series.length > 1 &&
        series
          .filter(({ key }) => day[key])
          .map(({ name, key }) => `${name} ${format(day[key])}`)
          .join(", ");
      return fill(
        readout,
        h("b", null, format(total(day))),
        ` ${shown(day.day)}`,
        parts && h("span", null, ` · ${parts}`),
      );
    }
    return fill(
      readout,
      h("b", null, note ?? format(days.reduce((sum, each) => sum + total(each), 0))),
      note ? "" : " in all",
    );
  }

  function draw() {
    const width = plot.clientWidth || 320;
    fill(plot, drawing(width));
    tell();
  }

  function drawing(width) {
    const top = Math.max(...days.map(total), 0);
    const high = (value) => (top ? (value / top) * (HEIGHT - FOOT - 10) : 0);
    const step = width / days.length;
    const gap = Math.min(3, step * 0.2);
    const base = HEIGHT - FOOT;
    const body = isLine
      ? area(high, step, base, width)
      : days.map((day, index) => {
          let y = base;
          return series.map(({ key, style }) => {
            const tall = high(day[key] ?? 0);
            if (!tall) return null;
            y -= Math.max(tall, 1);
            return s("rect", {
              class: style,
              x: index * step + gap / 2,
              y,
              width: Math.max(step - gap, 1),
              height: Math.max(tall, 1),
              rx: Math.min(1.5, step / 4),
            });
          });
        });
    const guide = at >= 0 && s("rect", { class: "guide", x: at * step, y: 0, width: step, height: base });
    const names = [0, Math.floor((days.length - 1) / 2), days.length - 1].filter(
      (index, place, all) => index >= 0 && all.indexOf(index) === place,
    );
    return s(
      "svg",
      { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" },
      guide,
      s("line", { class: "grid", x1: 0, x2: width, y1: 10.5, y2: 10.5 }),
      s("line", { class: "axis", x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5 }),
      body,
      top > 0 && s("text", { class: "tick", x: width, y: 8, "text-anchor": "end" }, format(top)),
      names.map((index, place) =>
        s(
          "text",
          {
            class: "tick",
            y: HEIGHT - 3,
            x: place === 0 ? 0 : index === days.length - 1 ? width : (index + 0.5) * step,
            "text-anchor": place === 0 ? "start" : index === days.length - 1 ? "end" : "middle",
          },
          shown(days[index].day),
        ),
      ),
    );
  }

  function area(high, step, base, width) {
    const [{ key, style }] = series;
    const points = days.map(
      (day, index) => `${((index + 0.5) * step).toFixed(1)},${(base - high(day[key] ?? 0)).toFixed(1)}`,
    );
    const [first, last] = [points[0]?.split(",")[1], points.at(-1)?.split(",")[1]];
    return s(
      "g",
      { class: style },
      s("polygon", {
        class: "area",
        points: `0,${base} 0,${first} ${points.join(" ")} ${width},${last} ${width},${base}`,
      }),
      s("polyline", { class: "line", points: `0,${first} ${points.join(" ")} ${width},${last}` }),
    );
  }

  const choose = (index) => {
    const next = index < 0 ? -1 : Math.min(Math.max(index, 0), days.length - 1);
    if (next === at) return;
    at = next;
    draw();
  };
  plot.addEventListener("pointermove", (event) =>
    choose(Math.floor((event.offsetX / plot.clientWidth) * days.length)),
  );
  plot.addEventListener("pointerleave", () => choose(-1));
  plot.addEventListener("blur", () => choose(-1));
  const openDay = () => link && days[at] && total(days[at]) > 0 && go(link(days[at].day));
  plot.addEventListener("click", openDay);
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Enter") return openDay();
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    return choose(Math.max(0, (at < 0 ? days.length : at) + by));
  });
  new ResizeObserver(draw).observe(plot);
  tell();
  return figure;
}

function table(title, days, series, format) {
  const used = days.filter((day) => series.some(({ key }) => day[key]));
  const names = series.map(({ name }) => h("th", { scope: "col" }, name));
  const cells = (day) => series.map(({ key }) => h("td", null, format(day[key] ?? 0)));
  const rows = used.map((day) => h("tr", null, h("th", { scope: "row" }, day.day), cells(day)));
  // In a separate box, because a table is as high as its rows, even if another height is set.
  return h(
    "div",
    { class: "hidden" },
    h(
      "table",
      null,
      h("caption", null, title),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Day"), names)),
      h("tbody", null, rows),
    ),
  );
}

/**
 * A square for each day, a column for each week that begins on Monday, darker with its `value`. The columns below it
 * have the same numbers, for screen readers.
 */
export function calendar({ title, days, value, text, link }) {
  const top = Math.max(...days.map(value), 1);
  // On a square-root scale, because few days are much busier than all others.
  const level = (day) => Math.ceil(Math.sqrt(value(day) / top) * 4);
  const weekday = (day) => (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
  const before = weekday(days[0].day);
  const step = 15;
  const squares = days.map((day, at) => {
    const [week, row] = [Math.floor((at + before) / 7), (at + before) % 7];
    return s(
      "rect",
      {
        class: `level-${level(day)}`,
        x: week * step,
        y: 16 + row * step,
        width: step - 3,
        height: step - 3,
        rx: 2.5,
        on: value(day) ? { click: () => go(link(day.day)) } : {},
      },
      s("title", null, `${shown(day.day)}: ${text(day)}`),
    );
  });
  const weeks = Math.floor((days.length - 1 + before) / 7) + 1;
  const months = days
    .map((day, at) => [day.day, Math.floor((at + before) / 7)])
    .filter(([day, week]) => day.endsWith("-01") && week < weeks - 1)
    .map(([day, week]) => s("text", { class: "tick", x: week * step, y: 10 }, shown(day).split(" ")[1]));
  const [width, height] = [weeks * step, 16 + 7 * step];
  return h(
    "figure",
    { class: "chart calendar" },
    h("figcaption", null, h("h2", null, title)),
    h(
      "div",
      { class: "scroll" },
      s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, months, squares),
    ),
  );
}

/**
 * Bars by name, the longest first. `link` returns the address for a name, and `text` its label. A row with
 * `isRest` is the sum of all others, and has no address.
 */
export function bars({ title, rows, format, link, text = String }) {
  const top = Math.max(...rows.map(({ value }) => value)) || 1;
  const label = (name) => ({ class: "name", title: text(name) });
  return h(
    "figure",
    { class: "chart bars" },
    h("figcaption", null, h("h2", null, title)),
    h(
      "ul",
      null,
      rows.map(({ name, value, style, isRest }) =>
        h(
          "li",
          null,
          isRest ? h("span", label(name), text(name)) : h("a", { ...label(name), href: link(name) }, text(name)),
          h("span", { class: "number" }, format(value)),
          s(
            "svg",
            { class: style ?? "one", width: "100%", height: 4, "aria-hidden": "true" },
            s("rect", { class: "rest", width: "100%", height: 4, rx: 2 }),
            s("rect", { width: `${Math.max((value / top) * 100, 0.5)}%`, height: 4, rx: 2 }),
          ),
        ),
      ),
    ),
  );
}
