// Bundles the page: `node build.mjs FOLDER [--watch]` writes it there, `node build.mjs --test` runs the unit tests.
import { spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const shared = {
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

/** `index.html` names the entry files by their hash; the server sets `<base>` if it serves below a prefix. */
function indexHtml(metafile, folder, { head, exported, parts }) {
  const built = {};
  for (const [file, output] of Object.entries(metafile.outputs))
    if (output.entryPoint) built[output.entryPoint] = { file: file.slice(folder.length + 1), ...output };
  const main = built["src/main.tsx"];
  // What the entry imports at once is fetched together with it, not after it.
  const preloads = main.imports
    .filter((part) => part.kind === "import-statement")
    .map((part) => `<link rel="modulepreload" href="${part.path.slice(folder.length + 1)}">\n`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="/">
<title>NoETL</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="exported-script" content="${exported}">
<meta name="page-parts" content='${JSON.stringify(parts)}'>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%232457c5'/%3E%3Cg fill='none' stroke='white' stroke-width='2.4'%3E%3Ccircle cx='9.5' cy='16' r='3.6'/%3E%3Cpath d='M13.5 16h5'/%3E%3C/g%3E%3Crect x='19' y='9' width='4' height='14' rx='1.2' fill='white'/%3E%3C/svg%3E">
<script src="${head}"></script>
<link rel="stylesheet" href="${built["src/style/main.css"].file}">
${preloads.join("")}<script type="module" src="${main.file}"></script>
</head>
<body><div id="app"></div><noscript>This page needs JavaScript. Everything it shows is in the API, too.</noscript></body>
</html>
`;
}

/** A script that stands by itself, as in the file of an exported execution. Gives its name. */
async function standalone(entry, outdir) {
  const { metafile } = await esbuild.build({
    ...shared,
    format: "iife",
    entryPoints: [entry],
    entryNames: "assets/[name]-[hash]",
    minify: true,
    metafile: true,
    outdir,
  });
  return Object.keys(metafile.outputs)[0].slice(outdir.length + 1);
}

/** By a regular expression for its address, what a page loads beside what all load: see `src/head.ts`. */
function partsOfPages(loads) {
  const always = new Set(loads["src/main.tsx"]);
  const rows = [...readFileSync("src/shell/pages.ts", "utf8").matchAll(/pattern: "([^"]+)".*import\("\.\.\/([^"]+)"\)/g)];
  if (!rows.length) throw new Error("src/shell/pages.ts has no pages");
  return rows.map(([, pattern, source]) => {
    const files = loads[`src/${source}.tsx`] ?? loads[`src/${source}/index.tsx`];
    const address = pattern.replace(/:\w+\*/, ".+").replace(/:\w+/g, "[^/]+");
    return [`^${address}$`, files.filter((file) => !always.has(file))];
  });
}

/** Writes beside the old page and swaps: a server never serves half of one. */
function page(folder) {
  const options = {
    ...shared,
    entryPoints: ["src/main.tsx", "src/style/main.css"],
    entryNames: "assets/[name]-[hash]",
    chunkNames: "assets/[name]-[hash]",
    splitting: true,
    minify: true,
    metafile: true,
    outdir: `${folder}.new`,
    plugins: [
      {
        name: "index",
        setup(build) {
          build.onStart(() => rmSync(`${folder}.new`, { recursive: true, force: true }));
          build.onEnd(async (result) => {
            if (result.errors.length) return;
            const relative = Object.keys(result.metafile.outputs)[0].split("/assets/")[0];
            const exported = await standalone("src/exported.tsx", relative);
            const head = await standalone("src/head.ts", relative);
            const loads = { ...sizes(result.metafile, relative), "src/head.ts": [head] };
            writeFileSync(join(relative, "index.html"), indexHtml(result.metafile, relative, { head, exported, parts: partsOfPages(loads) }));
            writeFileSync(join(relative, "modules.json"), JSON.stringify(loads));
            for (const file of [...Object.keys(result.metafile.outputs), join(relative, head)]) writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
            rmSync(folder, { recursive: true, force: true });
            renameSync(`${folder}.new`, folder);
          });
        },
      },
    ],
  };
  return options;
}

/** For each entry and lazily loaded source what it loads: the budgets of the tests are about these. */
function sizes(metafile, folder) {
  const loads = {};
  const closure = (file, seen = new Set()) => {
    if (!seen.has(file)) {
      seen.add(file);
      for (const part of metafile.outputs[file].imports)
        if (part.kind === "import-statement") closure(part.path, seen);
    }
    return seen;
  };
  for (const [file, output] of Object.entries(metafile.outputs))
    if (output.entryPoint)
      loads[output.entryPoint] = [...closure(file)].map((name) => name.slice(folder.length + 1));
  return loads;
}

function test() {
  const folder = mkdtempSync(join(tmpdir(), "noetl-web-"));
  try {
    const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
    esbuild.buildSync({ ...shared, entryPoints, outdir: folder, platform: "node", outExtension: { ".js": ".mjs" } });
    const files = readdirSync(folder).map((name) => join(folder, name));
    return spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const [first, second] = process.argv.slice(2);
if (first === "--test") {
  process.exit(test());
} else if (second === "--watch") {
  mkdirSync(join(first, ".."), { recursive: true });
  const context = await esbuild.context({ ...page(first), logLevel: "info" });
  await context.watch();
} else {
  mkdirSync(join(first, ".."), { recursive: true });
  await esbuild.build(page(first)).catch(() => process.exit(1));
}
