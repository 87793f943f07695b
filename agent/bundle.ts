import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, matchesGlob, relative } from "node:path";
import {
  agentSources,
  type AgentVersion,
  digestOfCode,
  isCodeFile,
  versionFile,
} from "@holdfast/common/agent-package.ts";
import { rolldown } from "rolldown";

/**
 * `node agent/bundle.ts DIRECTORY [RELEASE]` bundles the agent: `main.mjs` for a machine's HOLDFAST_AGENT_MAIN, the
 * keeper as `keeper.mjs`, the components of backups as `backup.mjs` and `spool-files.mjs`, the front ends as `tds.mjs`
 * and `opmsg.mjs`, and release and digest in `version.json`. The output depends only on the code, not on its directory.
 * Loading two hundred modules one by one is most of an agent's start time; a bundle takes a third of it. Engines remain
 * separate files, which are loaded on demand.
 */
const [directory, releaseArgument] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: bundle.ts DIRECTORY [RELEASE]");
const checkout = join(import.meta.dirname, "..");
const bundle = await rolldown({
  // The output contains paths relative to this directory.
  cwd: checkout,
  input: {
    main: join(import.meta.dirname, "src", "main.ts"),
    keeper: join(import.meta.dirname, "keeper", "main.ts"),
    backup: join(import.meta.dirname, "src", "backup", "main.ts"),
    "spool-files": join(import.meta.dirname, "src", "engines", "spool-files", "main.ts"),
    tds: join(checkout, "tds", "src", "main.ts"),
    opmsg: join(checkout, "opmsg", "src", "main.ts"),
    "load-code": join(import.meta.dirname, "src", "load-code.ts"),
  },
  platform: "node",
  // Optional of pg, and not installed.
  external: ["pg-native"],
});
const { output } = await bundle.write({
  dir: directory,
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name]-[hash].mjs",
});
await bundle.close();
// A bundle is built once for the same sources, so a change of any other file would not be in it.
const modules = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []));
const others = modules
  .map((id) => relative(checkout, id))
  .filter((path) => !path.startsWith("..") && !path.includes("node_modules"))
  .filter((path) => !path.startsWith("\0") && !agentSources.some((pattern) => matchesGlob(path, pattern)));
if (others.length > 0) throw new Error(`agentSources does not contain ${others.join(", ")}`);
const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };
const release = releaseArgument ?? version;
const files = readdirSync(directory)
  .filter(isCodeFile)
  .map((name) => ({ name, text: readFileSync(join(directory, name), "utf8") }));
const agentVersion: AgentVersion = { release, digest: digestOfCode(release, files) };
writeFileSync(join(directory, versionFile), JSON.stringify(agentVersion));
