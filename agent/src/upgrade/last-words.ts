import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { segmentsOf } from "../../keeper/segment-log.ts";
import { agentSlots } from "../../keeper/succession.ts";
import type { KeeperClient } from "../host/keeper-client.ts";

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
      const lines = text.split("\n").filter((line) => line.trim() !== "");
      const line = lines.findLast((each) => /error|reason/i.test(each)) ?? lines.at(-1) ?? "";
      return line.trim().slice(0, longestWords);
    },
  };
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
