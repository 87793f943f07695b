import type { Index } from "@holdfast/sdk/responses.ts";
import type { Tone } from "../tone.ts";

// biome-ignore format: a table, aligned so that it reads as one
const healths: ReadonlyMap<string, readonly [text: string, tone: Tone]> = new Map([
  ["green",  ["healthy",              "good"]],
  ["yellow", ["a copy has no node",   "warn"]],
  ["red",    ["documents are missing", "bad"]],
]);

/** Health of an index in words: the colors are those of the engine. */
export function indexHealth({ health }: Pick<Index, "health">): { readonly text: string; readonly tone: Tone } {
  if (health === null) return { text: "closed", tone: "none" };
  const [text, tone] = healths.get(health) ?? [health, "none"];
  return { text, tone };
}

/** Shards of an index with their copies: "1", "3, each with 1 copy". */
export function shardsText({ shards, replicas }: Pick<Index, "shards" | "replicas">): string {
  if (replicas === 0) return String(shards);
  return `${shards}${shards === 1 ? "" : ", each"} with ${replicas} ${replicas === 1 ? "copy" : "copies"}`;
}
