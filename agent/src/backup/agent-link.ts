import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { JobKey, ObjectUseJson, Report, ToAgent, ToComponent, UrlGrant } from "./job.ts";

/** The job's side of the connection to the agent. The agent dials the job's socket, and again after a restart. */
export interface AgentLink {
  /** Sends a report when the agent is connected. Only the newest one is sent. */
  report(report: Report): void;
  /** Requests presigned URLs. Waits for the agent and its controller without a limit. */
  mint(uses: readonly ObjectUseJson[], signal: AbortSignal): Promise<UrlGrant>;
  /** Calls back with a new data key, for the objects from now on. */
  onKey(listener: (key: JobKey) => void): void;
  /** Calls back when a base backup is complete. */
  onBase(listener: () => void): void;
  /** Sends the last report and writes it to the outcome file, for an agent that is not connected. */
  end(report: Report): void;
}

interface UrlRequest {
  readonly uses: readonly ObjectUseJson[];
  resolve(grant: UrlGrant): void;
}

const reportIntervalMs = 500;
const retryMs = 2_000;

export function createAgentLink(path: string, outcome: string): AgentLink {
  const agents = new Set<Socket>();
  const pending = new Map<number, UrlRequest>();
  let newest: Report | undefined;
  let reportTimer: NodeJS.Timeout | undefined;
  let lastId = 0;
  let onKey: ((key: JobKey) => void) | undefined;
  let onBase: (() => void) | undefined;

  function send(message: ToAgent, to: Iterable<Socket> = agents): void {
    for (const agent of to) agent.write(`${JSON.stringify(message)}\n`);
  }

  function receive(message: ToComponent): void {
    if ("key" in message) onKey?.(message.key);
    else if ("base" in message) onBase?.();
    else if ("urls" in message) {
      pending.get(message.urls.id)?.resolve(message.urls.grant);
      pending.delete(message.urls.id);
    } else {
      const { id } = message.refused;
      const request = pending.get(id);
      // No controller is connected, or it does not have the job yet.
      if (request !== undefined)
        setTimeout(() => pending.has(id) && send({ need: { id, uses: request.uses } }), retryMs);
    }
  }

  /** Reads one line. An invalid line closes its own connection only. */
  function readLine(line: string, from: Socket): void {
    try {
      receive(JSON.parse(line) as ToComponent);
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
      .on("line", (line) => readLine(line, socket));
    if (newest !== undefined) send({ report: newest }, [socket]);
    for (const [id, { uses }] of pending) send({ need: { id, uses } }, [socket]);
  });
  // The socket gets its public name only once it listens and has its mode.
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true });
  server.listen(temporary, () => {
    chmodSync(temporary, 0o660);
    renameSync(temporary, path);
  });
  server.unref();

  return {
    report(report) {
      newest = report;
      reportTimer ??= setTimeout(() => {
        reportTimer = undefined;
        if (newest !== undefined) send({ report: newest });
      }, reportIntervalMs);
    },
    mint(uses, signal) {
      lastId += 1;
      const id = lastId;
      return new Promise((resolve, reject) => {
        const abort = () => {
          pending.delete(id);
          reject(signal.reason as Error);
        };
        const done = (grant: UrlGrant) => {
          signal.removeEventListener("abort", abort);
          resolve(grant);
        };
        pending.set(id, { uses, resolve: done });
        if (signal.aborted) abort();
        else signal.addEventListener("abort", abort, { once: true });
        send({ need: { id, uses } });
      });
    },
    onKey(listener) {
      onKey = listener;
    },
    onBase(listener) {
      onBase = listener;
    },
    end(report) {
      clearTimeout(reportTimer);
      const temporaryOutcome = `${outcome}.new`;
      writeFileSync(temporaryOutcome, JSON.stringify(report), { mode: 0o640 });
      renameSync(temporaryOutcome, outcome);
      send({ report });
    },
  };
}
