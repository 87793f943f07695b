import { readProfiles } from "../../node/profiles.ts";
import type { CliDeps, GlobalFlags } from "../context.ts";
import { createRoot } from "../program.ts";
import { printable } from "../table.ts";
import { complete } from "./complete.ts";

/** A longer wait for suggestions is of no use to the user. */
const withinMs = 10_000;

/**
 * Writes the candidates for the last word, one a line: the word, a tab, a short description. Errors suggest nothing: a
 * shell has no place to show them. Resolves to the exit code.
 */
export async function answerShell(words: readonly string[], deps: CliDeps): Promise<number> {
  const silent = { write: () => undefined };
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(withinMs)]);
  const quiet = { ...deps, stdout: silent, stderr: silent, signal };
  const root = createRoot(quiet);
  try {
    const suggestions = await complete(root, words, async () => {
      const { openContext } = await import("../context.ts");
      const context = await openContext(root.opts<GlobalFlags>(), quiet);
      return {
        // Profiles can be had without a credential.
        get client() {
          return context.client;
        },
        profiles: () => Object.keys(readProfiles(deps.environment).profiles),
      };
    });
    for (const { value, about } of suggestions) deps.stdout.write(`${value}\t${printable(about)}\n`);
    return 0;
  } catch {
    return 1;
  }
}
