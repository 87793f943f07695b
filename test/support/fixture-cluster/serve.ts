import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { Order } from "./protocol.ts";

/** Answers orders on a Unix socket; what the answer throws is told as a refusal. */
export function serve(path: string, answer: (order: Order) => unknown): Promise<void> {
  rmSync(path, { force: true });
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += part;
    try {
      response.end(JSON.stringify({ ok: (await answer(JSON.parse(text) as Order)) ?? null }));
    } catch (error) {
      response.end(JSON.stringify({ error: (error as Error).message }));
    }
  });
  return new Promise((resolve) => server.listen(path, resolve));
}
