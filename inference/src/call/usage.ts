import { setImmediate } from "node:timers/promises";
import { costOf, type ModelPrice } from "@holdfast/common/inference/catalog.ts";
import type { Tokens, Used } from "../journal/journal-state.ts";
import { isRecord } from "./check-call.ts";

/** Reported usage above this multiple of the reservation is taken for an error. */
const plausibleTimes = 10;
const plausibleLeast = 1_000;

/** Parses reported usage; undefined if it is missing or implausible. An explicit 0 counts as 0. */
export function readUsage(value: unknown, reserved: Tokens): Tokens | undefined {
  if (!isRecord(value)) return undefined;
  const promptTokens = value["prompt_tokens"];
  // Embeddings have no completion tokens.
  const completionTokens = value["completion_tokens"] ?? 0;
  if (!isCount(promptTokens) || !isCount(completionTokens)) return undefined;
  const isPlausible = (reported: number, own: number) => reported <= Math.max(plausibleLeast, plausibleTimes * own);
  if (!isPlausible(promptTokens, reserved.promptTokens)) return undefined;
  if (!isPlausible(completionTokens, reserved.completionTokens)) return undefined;
  return { promptTokens, completionTokens };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** Usage that the provider reported. */
export function reportedUsage(tokens: Tokens, price: Omit<ModelPrice, "name">): Used {
  return { ...tokens, costMicrocents: costOf(price, tokens), estimated: false };
}

/** Usage by our own count: the estimate of the prompt, and the tokens of the output text. */
export async function countedUsage(
  reserved: Pick<Tokens, "promptTokens">,
  text: string,
  price: Omit<ModelPrice, "name">,
): Promise<Used> {
  const tokens = { promptTokens: reserved.promptTokens, completionTokens: await countTokens(text) };
  return { ...tokens, costMicrocents: costOf(price, tokens), estimated: true };
}

/** Counting costs the square of a word's length, so a long word is split. */
const pieceChars = 256;
/** Number of pieces after which the event loop gets a turn. */
const piecesAtOnce = 32;
/** Text beyond this length is extrapolated. */
const countedChars = 1 << 18;

/** Counts the tokens of a text. The tables are large and rarely needed, so they are loaded on demand. */
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

/** Ends a piece before the last space, with which a token starts; within a word only if there is no space. */
function pieceEnd(text: string, from: number): number {
  const most = from + pieceChars;
  if (most >= text.length) return text.length;
  const space = text.lastIndexOf(" ", most);
  return space > from ? space : most;
}
