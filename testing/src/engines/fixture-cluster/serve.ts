import { rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { Command } from "./protocol.ts";

/** Serves commands on a Unix socket; an error that `execute` throws is returned as a refusal. */
export function serve(path: string, execute: (command: Command) => unknown): Promise<void> {
  rmSync(path, { force: true });
  async function replyTo(request: IncomingMessage): Promise<object> {
    try {
      return { ok: (await execute(JSON.parse(await text(request)) as Command)) ?? null };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  const server = createServer((request, response) => {
    void replyTo(request).then((result) => response.end(JSON.stringify(result)));
  });
  return new Promise((resolve) => server.listen(path, resolve));
}
