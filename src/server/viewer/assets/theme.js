// Runs before the first paint, so that a dark page does not flash.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  if (localStorage.getItem("density") === "compact") document.documentElement.dataset.density = "compact";
} catch {
  // Without storage the page follows the system.
}
