import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { JobKey, ObjectUseText, Report, ToAgent, ToComponent, UrlGrant } from "./job.ts";

/** The component's side of the way to the agent, who may be away at any time: it dials when it is back. */
export interface AgentLink {
  /** The newest report reaches the agent soon, or when it dials. */
  report(report: Report): void;
  /** Resolves when an agent got a controller to sign them; waits for both as long as it takes. */
  mint(uses: readonly ObjectUseText[], signal: AbortSignal): Promise<UrlGrant>;
  onKey(listener: (key: JobKey) => void): void;
  onBase(listener: () => void): void;
  /** The last report, left where an agent finds it that is away now. */
  end(report: Report): void;
}

interface Need {
  readonly uses: readonly ObjectUseText[];
  resolve(grant: UrlGrant): void;
}

const reportEveryMs = 500;
const askAgainMs = 2_000;

export function createAgentLink(path: string, outcome: string): AgentLink {
  const agents = new Set<Socket>();
  const needs = new Map<number, Need>();
  let newest: Report | undefined;
  let telling: NodeJS.Timeout | undefined;
  let lastId = 0;
  let onKey: ((key: JobKey) => void) | undefined;
  let onBase: (() => void) | undefined;

  function say(message: ToAgent, to: Iterable<Socket> = agents): void {
    for (const agent of to) agent.write(`${JSON.stringify(message)}\n`);
  }

  function hear(message: ToComponent): void {
    if ("key" in message) onKey?.(message.key);
    else if ("base" in message) onBase?.();
    else if ("urls" in message) {
      needs.get(message.urls.id)?.resolve(message.urls.grant);
      needs.delete(message.urls.id);
    } else {
      const { id } = message.refused;
      const need = needs.get(id);
      // Controllers are away, or do not know of it yet.
      if (need !== undefined) setTimeout(() => needs.has(id) && say({ need: { id, uses: need.uses } }), askAgainMs);
    }
  }

  /** A line that is no message ends its connection, and nothing else. */
  function read(line: string, from: Socket): void {
    try {
      hear(JSON.parse(line) as ToComponent);
    } catch {
      from.destroy();
    }
  }

  const server = createServer((socket) => {
    agents.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => agents.delete(socket));
    createInterface({ input: socket })
      .on("error", () => socket.destroy())
      .on("line", (line) => read(line, socket));
    if (newest !== undefined) say({ report: newest }, [socket]);
    for (const [id, { uses }] of needs) say({ need: { id, uses } }, [socket]);
  });
  // A name that is known leads to a socket that listens and has its mode.
  const unfinished = `${path}.new`;
  rmSync(unfinished, { force: true });
  server.listen(unfinished, () => {
    chmodSync(unfinished, 0o660);
    renameSync(unfinished, path);
  });
  server.unref();

  return {
    report(report) {
      newest = report;
      telling ??= setTimeout(() => {
        telling = undefined;
        if (newest !== undefined) say({ report: newest });
      }, reportEveryMs);
    },
    mint(uses, signal) {
      lastId += 1;
      const id = lastId;
      return new Promise((resolve, reject) => {
        const abort = () => {
          needs.delete(id);
          reject(signal.reason as Error);
        };
        const done = (grant: UrlGrant) => {
          signal.removeEventListener("abort", abort);
          resolve(grant);
        };
        needs.set(id, { uses, resolve: done });
        if (signal.aborted) abort();
        else signal.addEventListener("abort", abort, { once: true });
        say({ need: { id, uses } });
      });
    },
    onKey(listener) {
      onKey = listener;
    },
    onBase(listener) {
      onBase = listener;
    },
    end(report) {
      clearTimeout(telling);
      const draft = `${outcome}.new`;
      writeFileSync(draft, JSON.stringify(report), { mode: 0o640 });
      renameSync(draft, outcome);
      say({ report });
    },
  };
}
