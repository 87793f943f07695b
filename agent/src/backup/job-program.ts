import { dirname, extname, join } from "node:path";

/** The program of job components that goes with an agent's own: beside it in a bundle, in its folder in a checkout. */
export function jobProgramOf(agentMain: string): string {
  return extname(agentMain) === ".mjs" ? join(dirname(agentMain), "backup.mjs") : join(import.meta.dirname, "main.ts");
}
