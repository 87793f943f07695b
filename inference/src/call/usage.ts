import { setImmediate } from "node:timers/promises";
import { costOf, type ModelPrice } from "@holdfast/common/inference/catalog.ts";
import type { Tokens, Used } from "../journal/journal-state.ts";
import { type CallKind, isRecord } from "./check-call.ts";

/** Maximum plausible number of tokens. Larger reported numbers are ignored: their costs would exceed 2^53. */
const maxTokens = 1_000_000_000;

/** Usage that a provider reported. A part that it did not report is absent. */
export interface ReportedUsage extends Partial<Tokens> {
  /** Tokens of the prompt that the provider read from its cache. */
  readonly cachedTokens: number;
  /** The sum of both parts, if the provider reported nothing else. */
  readonly totalTokens?: number;
}

/** Facts about a call in addition to its reported usage. */
export interface CountedCall {
  readonly kind: CallKind;
  readonly reserved: Tokens;
  readonly price: Omit<ModelPrice, "name">;
  /** Output that the provider sent. */
  readonly text: string;
}

/**
 * Parses reported usage; undefined if it contains no count. A missing part is the total without the other part; 0 is a
 * count. A total above both parts counts: some providers report reasoning in the total alone, and charge it as output.
 */
export function readUsage(kind: CallKind, value: unknown): ReportedUsage | undefined {
  if (!isRecord(value)) return undefined;
  const total = tokenCount(value["total_tokens"]);
  const prompt = tokenCount(value["prompt_tokens"]);
  // Embeddings have no output.
  const completion = kind === "embeddings" ? 0 : tokenCount(value["completion_tokens"]);
  if (total !== undefined && prompt === undefined && completion === undefined)
    return { totalTokens: total, cachedTokens: 0 };
  const restOf = (part: number | undefined) =>
    total === undefined || part === undefined || part > total ? undefined : total - part;
  const promptTokens = kind === "embeddings" ? max(prompt, total) : (prompt ?? restOf(completion));
  const completionTokens = kind === "embeddings" ? 0 : max(completion, restOf(prompt));
  if (promptTokens === undefined && (completionTokens === undefined || kind === "embeddings")) return undefined;
  const details = value["prompt_tokens_details"];
  const cached = isRecord(details) ? tokenCount(details["cached_tokens"]) : undefined;
  return {
    ...(promptTokens !== undefined && { promptTokens }),
    ...(completionTokens !== undefined && { completionTokens }),
    cachedTokens: Math.min(cached ?? 0, promptTokens ?? 0),
  };
}

/** The larger one of the numbers that are present. */
function max(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

/** A reported number of tokens; undefined if it is not a plausible number. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= maxTokens
    ? value
    : undefined;
}

/**
 * Usage of a call. Reported numbers count as reported, even above the reservation. A number that was not reported is
 * the proxy's own count, which never exceeds the reservation; of a total without its parts only the division is an
 * estimate.
 */
export async function usageOf(reported: ReportedUsage | undefined, call: CountedCall): Promise<Used> {
  const { reserved, price } = call;
  const { cachedTokens = 0 } = reported ?? {};
  const tokens = await tokensOf(reported, call);
  const { promptTokens, completionTokens } = tokens;
  const isAbove = promptTokens + completionTokens > reserved.promptTokens + reserved.completionTokens;
  return {
    ...tokens,
    costMicrocents: costOf(price, { ...tokens, cachedTokens }),
    estimated: reported?.promptTokens === undefined || reported.completionTokens === undefined,
    ...(isAbove && { aboveReservation: true as const }),
  };
}

async function tokensOf(reported: ReportedUsage | undefined, { reserved, text }: CountedCall): Promise<Tokens> {
  const { totalTokens, promptTokens = reserved.promptTokens } = reported ?? {};
  if (totalTokens !== undefined) {
    // The reserved prompt is an upper bound, so the output is at least what was sent.
    const sent = Math.min(await countTokens(text), totalTokens);
    const completionTokens = Math.max(sent, totalTokens - reserved.promptTokens);
    return { promptTokens: totalTokens - completionTokens, completionTokens };
  }
  const counted = async () => Math.min(await countTokens(text), reserved.completionTokens);
  return { promptTokens, completionTokens: reported?.completionTokens ?? (await counted()) };
}

/** Maximum length of a piece: counting takes time by the square of a word's length, so a long word is split. */
const maxPieceChars = 256;
/** Number of pieces after which the count yields to the event loop. */
const piecesPerTurn = 32;
/** Length of the text that is counted; the count of the rest is extrapolated. */
const maxCountedChars = 1 << 18;

/** Counts the tokens of a text. The tables are large and rarely needed, so they are loaded on demand. */
export async function countTokens(text: string): Promise<number> {
  if (text === "") return 0;
  const { countTokens: count } = await import("gpt-tokenizer");
  let tokens = 0;
  let at = 0;
  for (let piece = 1; at < text.length && at < maxCountedChars; piece += 1) {
    const end = pieceEnd(text, at);
    tokens += count(text.slice(at, end), { disallowedSpecial: new Set() });
    at = end;
    if (piece % piecesPerTurn === 0) await setImmediate();
  }
  return Math.ceil((tokens * text.length) / at);
}

/** End of a piece: before its last space, with which a token starts; within a word only if there is no space. */
function pieceEnd(text: string, from: number): number {
  const max = from + maxPieceChars;
  if (max >= text.length) return text.length;
  const space = text.lastIndexOf(" ", max);
  return space > from ? space : max;
}
