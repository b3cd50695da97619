// Settings with their values, sources and meanings.
import { get, post } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { toast } from "./toast.js";

export default async function settings(main) {
  const body = h("div");
  const sections = h("ul", { class: "sections", "aria-label": "Sections" });
  const words = h("input", {
    type: "search",
    name: "find",
    placeholder: "Find a setting",
    "aria-label": "Find a setting",
    on: { input: show },
  });
  const changedOnly = h("input", { type: "checkbox", name: "changed", on: { change: show } });
  const changedCount = h("span");
  main.append(
    h(
      "header",
      { class: "head" },
      h("h1", null, "Settings"),
      h(
        "p",
        { class: "lead" },
        "Stored in ",
        h("code", null, "settings.json"),
        ". Environment variables have priority. Settings for destinations, programs, secrets, privacy and budget can only be changed in a terminal.",
      ),
    ),
    h(
      "div",
      { class: "settings-bar" },
      words,
      h("label", { class: "check" }, changedOnly, changedCount),
      sections,
    ),
    body,
  );

  function draw(all) {
    const titles = [...new Set(all.map(({ group }) => group))];
    const changed = all.filter(isChanged).length;
    fill(changedCount, `Changed only (${changed})`);
    fill(
      sections,
      titles.map((title) => h("li", null, h("a", { href: `#${slug(title)}`, on: { click: jump } }, title))),
    );
    const section = (title) =>
      h(
        "section",
        { class: "group", id: slug(title) },
        h("h2", null, title),
        all.filter(({ group }) => group === title).map((setting) => row(setting, save)),
      );
    fill(body, titles.map(section), h("p", { class: "hint none", hidden: true }, "No setting matches."));
    show();
  }

  /** Scrolls to a section; the address stays as it is. */
  function jump(event) {
    event.preventDefault();
    document.getElementById(event.currentTarget.getAttribute("href").slice(1))?.scrollIntoView();
  }

  /** Hides settings that do not match the filter. */
  function show() {
    const wanted = words.value.trim().toLowerCase();
    for (const each of body.querySelectorAll(".setting"))
      each.hidden =
        !each.textContent.toLowerCase().includes(wanted) && !each.dataset.setting.toLowerCase().includes(wanted)
          ? true
          : changedOnly.checked && !each.matches(".is-changed");
    for (const section of body.querySelectorAll(".group"))
      section.hidden = !section.querySelector(".setting:not([hidden])");
    body.querySelector(".none").hidden = Boolean(body.querySelector(".setting:not([hidden])"));
  }

  async function save(setting, value, wrong) {
    fill(wrong);
    try {
      const saved = await post("/api/settings", { [setting.name]: value });
      toast(value === null ? "Reset to the default" : "Saved");
      const focused = document.activeElement?.name;
      draw(saved.settings);
      if (focused) body.querySelector(`[name="${CSS.escape(focused)}"]`)?.focus();
    } catch (error) {
      fill(wrong, prose([error.message, error.remedy].filter(Boolean).join(". ")));
    }
  }

  draw((await get("/api/settings")).settings);
  return { title: "Settings", up: "/" };
}

const slug = (title) => `settings-${title.toLowerCase().replace(/\W+/g, "-")}`;
const isChanged = ({ source, is_set: isSet }) => source !== "default" || isSet;

function row(setting, save) {
  const { name, source, meaning, command } = setting;
  const isFixed = source === "environment" || setting.is_read_only;
  const wrong = h("p", { class: "wrong", role: "alert" });
  const input = setting.is_read_only
    ? shown(setting)
    : control(setting, isFixed, (next) => save(setting, next, wrong));
  const hint = { environment: "from the environment", file: "chosen", default: "default" }[source];
  return h(
    "div",
    { class: `setting is-${source}${isChanged(setting) ? " is-changed" : ""}`, data: { setting: name } },
    h(
      "div",
      { class: "about" },
      h(
        setting.is_read_only ? "span" : "label",
        setting.is_read_only ? { class: "name", id: name } : { for: name },
        setting.unit ? `${setting.label} (${setting.unit})` : setting.label,
      ),
      h("p", { id: `${name}-meaning` }, prose(meaning)),
      wrong,
    ),
    h(
      "div",
      { class: "value" },
      input,
      h(
        "p",
        { class: "meta" },
        !(setting.is_read_only && source === "default") && h("span", null, hint),
        source === "file" &&
          !isFixed &&
          h(
            "button",
            {
              type: "button",
              class: "link",
              on: { click: () => save(setting, null, wrong) },
            },
            h("span", { class: "hidden" }, `${name}: `),
            setting.default
              ? `back to ${setting.default.length > 24 ? "the default" : setting.default}`
              : "clear",
          ),
      ),
      command &&
        source !== "environment" &&
        h(
          "details",
          { class: "raw" },
          h("summary", null, "Change it in a terminal"),
          h("pre", { class: "command", tabindex: 0 }, command),
        ),
    ),
  );
}

/** A value that can only be changed in a terminal. For a secret or a destination, shows only whether it is set. */
function shown({ name, value, kind, default: usual, is_hidden: isHidden, is_set: isSet }) {
  const plain = kind === "list" ? value.replaceAll(/,\s*/g, ", ") : value;
  const word = isHidden ? usual : ({ true: "on", false: "off" }[value] ?? plain);
  return h(
    "output",
    { class: "fixed", "aria-labelledby": name },
    isHidden && isSet ? "Set, not shown here" : word || "None",
  );
}

function control({ name, value, default: usual, allowed }, disabled, changed) {
  const common = { id: name, name, disabled, "aria-describedby": `${name}-meaning` };
  const choices = options(allowed, usual);
  if (choices) {
    const select = h(
      "select",
      { ...common, on: { change: () => changed(select.value) } },
      choices.map((each) =>
        h("option", { value: each, selected: each === value }, { true: "on", false: "off" }[each] ?? each),
      ),
    );
    return select;
  }
  const isLong = Math.max((value ?? "").length, usual.length) > 40;
  const input = h(isLong ? "textarea" : "input", {
    ...common,
    ...(isLong ? { rows: 3 } : { type: "text", value }),
    placeholder: usual || "None",
    spellcheck: "false",
    autocomplete: "off",
    on: { change: () => changed(input.value) },
  });
  if (isLong) input.value = value;
  return input;
}

function options(allowed, usual) {
  if (Array.isArray(allowed) && allowed.length) return allowed;
  return usual === "true" || usual === "false" ? ["true", "false"] : undefined;
}
