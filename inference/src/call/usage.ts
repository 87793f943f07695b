import { costOf, type ModelPrice } from "@holdfast/common/inference/catalog.ts";
import type { Used } from "../hold/accounting.ts";
import type { Tokens } from "../journal/journal-state.ts";
import { isRecord } from "./check-call.ts";

/** More than this many times what was reserved is no usage but a mistake. */
const plausibleTimes = 10;
const plausibleLeast = 1_000;

/** Usage as a provider told it; undefined for none and for what cannot be true. An explicit 0 is 0. */
export function readUsage(value: unknown, reserved: Tokens): Tokens | undefined {
  if (!isRecord(value)) return undefined;
  const promptTokens = value["prompt_tokens"];
  // Embeddings have none.
  const completionTokens = value["completion_tokens"] ?? 0;
  if (!isWhole(promptTokens) || !isWhole(completionTokens)) return undefined;
  const isPlausible = (told: number, own: number) => told <= Math.max(plausibleLeast, plausibleTimes * own);
  if (!isPlausible(promptTokens, reserved.promptTokens)) return undefined;
  if (!isPlausible(completionTokens, reserved.completionTokens)) return undefined;
  return { promptTokens, completionTokens };
}

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** What was used when the provider told it. */
export function toldUsage(tokens: Tokens, price: Omit<ModelPrice, "name">): Used {
  return { ...tokens, costMicrocents: costOf(price, tokens), estimated: false };
}

/** What was used by our own count: the estimate of the prompt, and the tokens of the answer's text. */
export async function countedUsage(
  reserved: Pick<Tokens, "promptTokens">,
  text: string,
  price: Omit<ModelPrice, "name">,
): Promise<Used> {
  const tokens = { promptTokens: reserved.promptTokens, completionTokens: await countTokens(text) };
  return { ...tokens, costMicrocents: costOf(price, tokens), estimated: true };
}

/** Its tables are large and rarely needed. */
async function countTokens(text: string): Promise<number> {
  if (text === "") return 0;
  const { countTokens: count } = await import("gpt-tokenizer");
  return count(text, { disallowedSpecial: new Set() });
}
