// Runs before the first paint, by itself: who chose a theme must not see the other one first.
const chosen = localStorage.getItem("noetl.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
