import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { segmentsOf } from "../../keeper/segment-log.ts";
import { agentSlots } from "../../keeper/agent-handover.ts";
import type { KeeperClient } from "../os/keeper-client.ts";

/** Log of the new agent, from now on. */
export interface NewAgentLog {
  /** The most telling reason why it ended, truncated to fit a message; empty if it logged nothing. */
  failureReason(): Promise<string>;
}

const maxReadBytes = 64 << 10;
const maxReasonLength = 300;

export async function followNewAgentLog(keeper: Pick<KeeperClient, "component">, logDir: string): Promise<NewAgentLog> {
  const slot = agentSlots.find((name) => (keeper.component(name)?.state ?? "empty") === "empty") ?? "agent-next";
  const path = join(logDir, `${slot}.log`);
  const from = await endOf(path);
  return {
    async failureReason() {
      const text = await textSince(path, from).catch(() => "");
      return failureReasonIn(text);
    },
  };
}

/**
 * The most telling reason in an agent's output, truncated to fit a message. Of a log line, which is JSON, it is
 * the message; of an uncaught error, the message without the stack.
 */
export function failureReasonIn(text: string): string {
  const messages = text.split("\n").flatMap((line) => {
    const text = line.startsWith("{") ? messageOfLog(line) : messageOfTrace(line);
    return text === undefined ? [] : [text];
  });
  return (messages.findLast(({ isReason }) => isReason) ?? messages.at(-1))?.text.slice(0, maxReasonLength) ?? "";
}

interface LogMessage {
  readonly text: string;
  readonly isReason: boolean;
}

function messageOfLog(line: string): LogMessage | undefined {
  let fields: { msg?: string; reason?: string; error?: { message?: string } | string };
  try {
    fields = JSON.parse(line) as typeof fields;
  } catch {
    // Truncated by the end of the process or of the part that was read.
    return undefined;
  }
  const { msg = "", reason, error } = fields;
  const detail = reason ?? (typeof error === "string" ? error : error?.message);
  return { text: detail === undefined ? msg : `${msg}: ${detail}`, isReason: detail !== undefined };
}

/** A line that Node prints for an uncaught error: location, message or stack. */
function messageOfTrace(line: string): LogMessage | undefined {
  const text = line.trim();
  if (text === "" || /^at |^\^+$|^Node\.js v|^file:\/\//.test(text)) return undefined;
  return { text, isReason: /^(\w+ )?\w*Error\b/.test(text) };
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
  const begin = Math.max(now.segment === from.segment ? from.size : 0, now.size - maxReadBytes);
  const file = await open(`${path}.${now.segment}`, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(now.size - begin), 0, now.size - begin, begin);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}
