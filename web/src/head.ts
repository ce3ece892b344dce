// Runs before the first paint, by itself.

// Who chose a theme must not see the other one first.
const root = document.documentElement;
const chosen = localStorage["noetl.theme"];
if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

// What the page of this address needs is asked for at once, not when the script that knows it has come and run.
const path = location.pathname.slice(new URL(document.baseURI).pathname.length - 1);
const parts: [string, string[]][] = JSON.parse(document.querySelector<HTMLMetaElement>("[name=page-parts]")!.content);
for (const href of parts.find(([address]) => path.match(address))?.[1] ?? [])
  document.head.append(Object.assign(document.createElement("link"), { rel: "modulepreload", href }));
