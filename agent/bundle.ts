import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * `node agent/bundle.ts DIRECTORY`: the agent in few files, `main.mjs` first, for a machine's HOLDFAST_AGENT_MAIN, and the
 * keeper as `keeper.mjs`. Loading
 * two hundred modules one by one is most of an agent's start; in a bundle it costs a third. Engines stay files of their
 * own, loaded when one is needed.
 */
const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: bundle.ts DIRECTORY");
const bundle = await rolldown({
  input: {
    main: join(import.meta.dirname, "src", "main.ts"),
    keeper: join(import.meta.dirname, "keeper", "main.ts"),
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
