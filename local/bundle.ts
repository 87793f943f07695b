import { createRequire } from "node:module";
import { dirname, join, matchesGlob, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { programSources, sourcePrograms } from "./src/programs.ts";

/**
 * `node local/bundle.ts DIRECTORY` bundles the platform's programs, each as `<name>.mjs` with the code that several use
 * in files beside it. Loading two thousand modules one by one is most of a controller's start time; a bundle takes a
 * third of it.
 *
 * A bundle is for this checkout alone: files that a module reads beside itself, and worker threads, stay in the
 * checkout, and the bundle contains their paths.
 */
const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: bundle.ts DIRECTORY");
const checkout = join(import.meta.dirname, "..");

/** Statement that declares CommonJS's variables of a module, with the paths of its source. */
const commonjsPaths = (id: string) =>
  `var __dirname = ${JSON.stringify(dirname(id))}, __filename = ${JSON.stringify(id)};`;

const bundle = await rolldown({
  cwd: checkout,
  input: sourcePrograms(checkout),
  platform: "node",
  // Optional of pg, and not installed.
  external: ["pg-native"],
  plugins: [
    {
      name: "native-modules",
      resolveId: {
        filter: { id: /^[^./]/ },
        async handler(source, importer, { kind }) {
          const found = await this.resolve(source, importer, { kind, skipSelf: true });
          return found?.id.endsWith(".node") ? { id: found.id, external: "absolute" } : found;
        },
      },
    },
    {
      name: "paths-of-sources",
      transform: {
        filter: { code: /import\.meta\.(dirname|resolve|url)|\b__(dirname|filename)\b/ },
        handler(code, id) {
          if (id.includes("/node_modules/"))
            return /(const|let) __(dirname|filename)/.test(code) ? undefined : `${commonjsPaths(id)}${code}`;
          return code
            .replaceAll("import.meta.dirname", JSON.stringify(dirname(id)))
            .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
            .replaceAll(/import\.meta\.resolve\("([^"]+)"\)/g, (_, name: string) =>
              JSON.stringify(pathToFileURL(createRequire(id).resolve(name)).href),
            );
        },
      },
    },
  ],
});
const { output } = await bundle.write({
  dir: directory,
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name]-[hash].mjs",
});
await bundle.close();

// A bundle is built once for the same sources, so a change of any other file would not be in it.
const others = output
  .flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []))
  .filter((id) => !id.startsWith("\0") && !id.includes("/node_modules/"))
  .map((id) => relative(checkout, id))
  .filter((path) => !programSources.some((pattern) => matchesGlob(path, pattern)));
if (others.length > 0) throw new Error(`programSources does not contain ${others.join(", ")}`);
