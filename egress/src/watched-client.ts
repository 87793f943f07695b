import type { EgressClient } from "./egress-client.ts";
import { EgressFailure } from "./egress-failure.ts";

/** Told of each request and connection: what it was, how it ended (`ok`, or the kind of failure), and in how many seconds. */
export type EgressWatcher = (what: "post" | "request" | "connect", outcome: string, seconds: number) => void;

/** The client, with a watcher. Of a request the time counts up to the head of its answer. */
export function watchedClient(client: EgressClient, watch: EgressWatcher): EgressClient {
  async function watched<T>(what: Parameters<EgressWatcher>[0], work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const tell = (outcome: string) => watch(what, outcome, (performance.now() - began) / 1_000);
    try {
      const answer = await work();
      tell("ok");
      return answer;
    } catch (error) {
      tell(error instanceof EgressFailure ? error.kind.replaceAll(" ", "_") : "ended");
      throw error;
    }
  }
  return {
    post: (...args) => watched("post", () => client.post(...args)),
    request: (...args) => watched("request", () => client.request(...args)),
    connect: (...args) => watched("connect", () => client.connect(...args)),
    check: (...args) => client.check(...args),
    close: () => client.close(),
  };
}
