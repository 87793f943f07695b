import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** Metrics of an issuer. They contain no names of apps or users. */
export interface Metrics {
  /** Counts a response; `route` is a value of `routeName`. */
  responded(route: string, status: number, seconds: number): void;
  mail(outcome: "sent" | "failed"): void;
  text(): Promise<string>;
}

interface Gauges {
  readonly apps: () => number;
  readonly isConnected: () => boolean;
}

export function createMetrics(read: Gauges): Metrics {
  const registry = new Registry();
  const named = (name: string, help: string) => ({ name: `holdfast_issuer_${name}`, help, registers: [registry] });
  const seconds = new Histogram({
    ...named("request_seconds", "Time from a request to its response"),
    labelNames: ["route", "status"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  const mails = new Counter({ ...named("mails_total", "Attempts to send a mail"), labelNames: ["outcome"] });
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      ...named(name, help),
      collect() {
        this.set(value());
      },
    });
  gauge("apps", "Apps that are served", read.apps);
  gauge("controller_connected", "1 while connected to a controller", () => (read.isConnected() ? 1 : 0));
  return {
    responded: (route, status, duration) => seconds.observe({ route, status: String(status) }, duration),
    mail: (outcome) => mails.inc({ outcome }),
    text: () => registry.metrics(),
  };
}
