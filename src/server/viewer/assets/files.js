// The files that memories are about, those with most memories first.
import { get } from "./api.js";
import { calm, fill, h } from "./dom.js";
import { many } from "./format.js";
import { fileRow } from "./project.js";
import { empty } from "./router.js";

export default async function files(main, { query }) {
  const project = query.get("project") ?? "";
  const { items } = await get("/api/files", { project, limit: 1000 });
  const list = h("ul", { class: "file-list" });
  const status = h("p", { class: "hint", role: "status" });
  const words = h("input", {
    type: "search",
    name: "path",
    placeholder: "Part of a path",
    "aria-label": "Part of a path",
    on: { input: calm(60, draw) },
  });
  function draw() {
    const wanted = words.value.trim().toLowerCase();
    const found = items.filter(({ file }) => file.toLowerCase().includes(wanted));
    fill(status, `${many(found.length, "file")}${items.length === 1000 ? ", those with most memories" : ""}`);
    fill(list, found.slice(0, 300).map((file) => fileRow(file, project)));
  }
  main.append(
    h(
      "header",
      { class: "head row-head" },
      h("h1", null, "Files", project && h("span", { class: "about" }, " ", project)),
      items.length > 0 && words,
    ),
    items.length
      ? h("div", null, status, list)
      : empty("No files yet", "Files that observations name appear here."),
  );
  if (items.length) draw();
  return { title: "Files", up: "/" };
}
