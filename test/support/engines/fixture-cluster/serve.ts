import { rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { Order } from "./protocol.ts";

/** Answers orders on a Unix socket; what the answer throws is told as a refusal. */
export function serve(path: string, answer: (order: Order) => unknown): Promise<void> {
  rmSync(path, { force: true });
  async function outcome(request: IncomingMessage): Promise<object> {
    try {
      return { ok: (await answer(JSON.parse(await text(request)) as Order)) ?? null };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  const server = createServer((request, response) => {
    void outcome(request).then((result) => response.end(JSON.stringify(result)));
  });
  return new Promise((resolve) => server.listen(path, resolve));
}
