import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Tokens } from "./journal/journal-state.ts";

/** Metrics of a proxy process. */
export interface Metrics {
  responded(status: number, code: string, provider: string): void;
  firstByte(provider: string, seconds: number): void;
  tokens(provider: string, used: Tokens): void;
  /** Counts a call whose reported usage exceeds its reservation. */
  aboveReservation(provider: string): void;
  text(): Promise<string>;
}

interface Gauges {
  readonly inFlight: () => number;
  readonly abandonedCalls: () => number;
  readonly journalBytes: () => number;
  readonly isConnected: () => boolean;
}

export function createMetrics(read: Gauges): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  const named = (name: string, help: string) => ({ name: `holdfast_inference_${name}`, help, registers });
  const requests = new Counter({
    ...named("requests_total", "Requests by response"),
    labelNames: ["status", "code", "provider"],
  });
  const first = new Histogram({
    ...named("first_byte_seconds", "Time from the head of a request to the head of the provider's response"),
    labelNames: ["provider"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  const tokens = new Counter({
    ...named("tokens_total", "Tokens by direction"),
    labelNames: ["provider", "direction"],
  });
  const above = new Counter({
    ...named("usage_above_reservation_total", "Calls whose reported usage exceeds their reservation"),
    labelNames: ["provider"],
  });
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      ...named(name, help),
      collect() {
        this.set(value());
      },
    });
  gauge("calls_under_way", "Calls in flight", read.inFlight);
  gauge("drains", "Responses that are read for disconnected clients", read.abandonedCalls);
  gauge("journal_bytes", "Size of the journal in bytes", read.journalBytes);
  gauge("controller_connected", "1 while connected to a controller", () => (read.isConnected() ? 1 : 0));
  return {
    responded: (status, code, provider) => requests.inc({ status: String(status), code, provider }),
    firstByte: (provider, seconds) => first.observe({ provider }, seconds),
    tokens(provider, { promptTokens, completionTokens }) {
      tokens.inc({ provider, direction: "in" }, promptTokens);
      tokens.inc({ provider, direction: "out" }, completionTokens);
    },
    aboveReservation: (provider) => above.inc({ provider }),
    text: () => registry.metrics(),
  };
}
