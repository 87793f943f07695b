import { setImmediate } from "node:timers/promises";
import { costOf, type ModelPrice } from "@holdfast/common/inference/catalog.ts";
import type { Tokens, Used } from "../journal/journal-state.ts";
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

/** A word costs the square of its length to count, so that a longer one is counted in pieces. */
const pieceChars = 256;
/** Other calls go on between so many pieces. */
const piecesAtOnce = 32;
/** What comes after so much has as many tokens for its length. */
const countedChars = 1 << 18;

/** Tokens of a text. The tables for it are large and rarely needed. */
export async function countTokens(text: string): Promise<number> {
  if (text === "") return 0;
  const { countTokens: count } = await import("gpt-tokenizer");
  let tokens = 0;
  let at = 0;
  for (let piece = 1; at < text.length && at < countedChars; piece += 1) {
    const end = pieceEnd(text, at);
    tokens += count(text.slice(at, end), { disallowedSpecial: new Set() });
    at = end;
    if (piece % piecesAtOnce === 0) await setImmediate();
  }
  return Math.ceil((tokens * text.length) / at);
}

/** Before the last space, with which a token begins; in the middle of a word only where there is none. */
function pieceEnd(text: string, from: number): number {
  const most = from + pieceChars;
  if (most >= text.length) return text.length;
  const space = text.lastIndexOf(" ", most);
  return space > from ? space : most;
}
