import type { EgressClient } from "./egress-client.ts";
import { EgressFailure } from "./egress-failure.ts";

/** Observes requests and connections: type, outcome (`ok` or the kind of failure), and seconds. */
export type EgressObserver = (what: "post" | "request" | "connect", outcome: string, seconds: number) => void;

/** Adds an observer to a client. The time of a request ends at the head of its response. */
export function instrumentedClient(client: EgressClient, observe: EgressObserver): EgressClient {
  async function observed<T>(what: Parameters<EgressObserver>[0], work: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    const report = (outcome: string) => observe(what, outcome, (performance.now() - startedMs) / 1_000);
    try {
      const result = await work();
      report("ok");
      return result;
    } catch (error) {
      report(error instanceof EgressFailure ? error.kind.replaceAll(" ", "_") : "ended");
      throw error;
    }
  }
  return {
    post: (...args) => observed("post", () => client.post(...args)),
    request: (...args) => observed("request", () => client.request(...args)),
    connect: (...args) => observed("connect", () => client.connect(...args)),
    check: (...args) => client.check(...args),
    close: () => client.close(),
  };
}
