import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { rolldown } from "rolldown";

/**
 * `node console/bundle.ts DIRECTORY` builds the console: `index.html`, its script and its style sheet, with the digest
 * of the content in the names of all files but the first, and each compressed in advance (`.br`, `.gz`). The same code
 * always gives the same output.
 */
const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: bundle.ts DIRECTORY");
mkdirSync(directory, { recursive: true });
const source = join(import.meta.dirname, "src");

/** Modules that every page uses; they are one file beside the first page. */
const base =
  /node_modules\/(@preact\/|preact\/)|\/sdk\/src\/|\/console\/src\/(parts|live|router|session|shell|[a-z-]+\.ts|events\/event-view)/;

const bundle = await rolldown({
  cwd: join(import.meta.dirname, ".."),
  input: { console: join(source, "main.tsx") },
  platform: "browser",
});
const { output } = await bundle.write({
  dir: directory,
  format: "esm",
  minify: true,
  entryFileNames: "[name]-[hash].js",
  chunkFileNames: "[name]-[hash].js",
  codeSplitting: { groups: [{ name: "base", test: base }] },
});
await bundle.close();
const entry = output.find((file) => file.type === "chunk" && file.isEntry);
if (entry?.type !== "chunk") throw new Error("the bundle has no entry");

/** In the order in which they apply. */
const sheets = ["tokens.css", "base.css", "parts.css", "shell.css", "pages.css"];
const uplot = readFileSync(new URL(import.meta.resolve("uplot/dist/uPlot.min.css")), "utf8");
const css = [uplot, ...sheets.map((name) => readFileSync(join(source, "style", name), "utf8"))].join("\n");
const style = `style-${createHash("sha256").update(css).digest("hex").slice(0, 8)}.css`;
writeFileSync(join(directory, style), css);

/** The files that the script imports are requested with it, and not after it. */
const preloads = entry.imports.map((name) => `<link rel="modulepreload" href="/console/assets/${name}">`);
const page = readFileSync(join(source, "index.html"), "utf8")
  .replace("%SCRIPT%", entry.fileName)
  .replace("%STYLE%", style)
  .replace("%PRELOADS%", preloads.join(""));
writeFileSync(join(directory, "index.html"), page);

const [brotliOf, gzipOf] = [promisify(brotliCompress), promisify(gzip)];
const names = [...output.map(({ fileName }) => fileName), style, "index.html"];
await Promise.all(
  names.map(async (name) => {
    const bytes = readFileSync(join(directory, name));
    writeFileSync(join(directory, `${name}.br`), await brotliOf(bytes));
    writeFileSync(join(directory, `${name}.gz`), await gzipOf(bytes));
  }),
);
