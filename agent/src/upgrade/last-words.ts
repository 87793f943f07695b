import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { segmentsOf } from "../../keeper/segment-log.ts";
import { agentSlots } from "../../keeper/succession.ts";
import type { KeeperClient } from "../os/keeper-client.ts";

/** What the agent says that is started beside this one, from now on. */
export interface Listening {
  /** The line that tells most of why it ended, cut to what fits a reason; empty when it said nothing. */
  last(): Promise<string>;
}

const longestRead = 64 << 10;
const longestWords = 300;

export async function listenTo(keeper: Pick<KeeperClient, "component">, logDir: string): Promise<Listening> {
  const slot = agentSlots.find((name) => (keeper.component(name)?.state ?? "empty") === "empty") ?? "agent-next";
  const path = join(logDir, `${slot}.log`);
  const from = await endOf(path);
  return {
    async last() {
      const text = await textSince(path, from).catch(() => "");
      return lastWordsIn(text);
    },
  };
}

/**
 * Pure: of what an agent wrote the words that tell most of why it ended, cut to what fits a reason: those of a line of its log
 * and not the line, which is JSON, and those of an error that nobody caught and not its stack.
 */
export function lastWordsIn(text: string): string {
  const said = text.split("\n").flatMap((line) => {
    const words = line.startsWith("{") ? wordsOfLog(line) : wordsOfTrace(line);
    return words === undefined ? [] : [words];
  });
  return (said.findLast(({ isReason }) => isReason) ?? said.at(-1))?.words.slice(0, longestWords) ?? "";
}

interface Words {
  readonly words: string;
  readonly isReason: boolean;
}

function wordsOfLog(line: string): Words | undefined {
  let fields: { msg?: string; reason?: string; error?: { message?: string } | string };
  try {
    fields = JSON.parse(line) as typeof fields;
  } catch {
    // Cut off by the end of the process, or of what was read.
    return undefined;
  }
  const { msg = "", reason, error } = fields;
  const why = reason ?? (typeof error === "string" ? error : error?.message);
  return { words: why === undefined ? msg : `${msg}: ${why}`, isReason: why !== undefined };
}

/** What Node prints of an error: its place, its message, its stack. */
function wordsOfTrace(line: string): Words | undefined {
  const words = line.trim();
  if (words === "" || /^at |^\^+$|^Node\.js v|^file:\/\//.test(words)) return undefined;
  return { words, isReason: /^(\w+ )?\w*Error\b/.test(words) };
}

async function endOf(path: string): Promise<{ segment: number; size: number }> {
  const segment = segmentsOf(path).at(-1) ?? 1;
  const size = await stat(`${path}.${segment}`).then(
    (found) => found.size,
    () => 0,
  );
  return { segment, size };
}

async function textSince(path: string, from: { segment: number; size: number }): Promise<string> {
  const now = await endOf(path);
  const begin = Math.max(now.segment === from.segment ? from.size : 0, now.size - longestRead);
  const file = await open(`${path}.${now.segment}`, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(now.size - begin), 0, now.size - begin, begin);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}
