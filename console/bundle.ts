import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * `node console/bundle.ts DIRECTORY` builds the console: `index.html`, its script and its style sheet, with the digest
 * of the content in the names of all files but the first. The same code always gives the same output.
 */
const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: bundle.ts DIRECTORY");
mkdirSync(directory, { recursive: true });
const source = join(import.meta.dirname, "src");

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
});
await bundle.close();
const script = output.find((file) => file.type === "chunk" && file.isEntry)?.fileName;
if (script === undefined) throw new Error("the bundle has no entry");

/** In the order in which they apply. */
const sheets = ["tokens.css", "base.css", "parts.css", "shell.css", "pages.css"];
const uplot = readFileSync(new URL(import.meta.resolve("uplot/dist/uPlot.min.css")), "utf8");
const css = [uplot, ...sheets.map((name) => readFileSync(join(source, "style", name), "utf8"))].join("\n");
const style = `style-${createHash("sha256").update(css).digest("hex").slice(0, 8)}.css`;
writeFileSync(join(directory, style), css);

const page = readFileSync(join(source, "index.html"), "utf8");
writeFileSync(join(directory, "index.html"), page.replace("%SCRIPT%", script).replace("%STYLE%", style));
