import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentVersion, digestOfCode, isCodeFile, versionFile } from "@holdfast/common/agent-package.ts";
import { rolldown } from "rolldown";

/**
 * `node agent/bundle.ts DIRECTORY [RELEASE]`: the agent in few files, `main.mjs` first, for a machine's HOLDFAST_AGENT_MAIN,
 * the keeper as `keeper.mjs`, its components for backups as `backup.mjs`, and in `version.json` which it is. The same code makes the same files wherever it lies. Loading
 * two hundred modules one by one is most of an agent's start; in a bundle it costs a third. Engines stay files of their
 * own, loaded when one is needed.
 */
const [directory, given] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: bundle.ts DIRECTORY [RELEASE]");
const checkout = join(import.meta.dirname, "..");
const bundle = await rolldown({
  // Its paths are in the files.
  cwd: checkout,
  input: {
    main: join(import.meta.dirname, "src", "main.ts"),
    keeper: join(import.meta.dirname, "keeper", "main.ts"),
    backup: join(import.meta.dirname, "src", "backup", "main.ts"),
    "load-code": join(import.meta.dirname, "src", "load-code.ts"),
  },
  platform: "node",
  // Optional of pg, and not installed.
  external: ["pg-native"],
});
await bundle.write({
  dir: directory,
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name]-[hash].mjs",
});
await bundle.close();
const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };
const release = given ?? version;
const files = readdirSync(directory)
  .filter(isCodeFile)
  .map((name) => ({ name, text: readFileSync(join(directory, name), "utf8") }));
const made: AgentVersion = { release, digest: digestOfCode(release, files) };
writeFileSync(join(directory, versionFile), JSON.stringify(made));
