import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testImage } from "../engines/test-image.ts";
import { freePorts } from "../platform/free-ports.ts";
import { testUid } from "../platform/platform-software.ts";
import type { StoredSeries } from "./stored-series.ts";

/** Debian's Prometheus as a receiver of remote write. */
export interface Prometheus {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** The newest value of a series, with its labels; undefined without one. */
  newest(
    query: string,
  ): Promise<{ readonly labels: Readonly<Record<string, string>>; readonly value: number } | undefined>;
  /** All samples of the last minutes, of every series that matches; times in milliseconds since 1970. */
  series(query: string, minutes?: number): Promise<readonly StoredSeries[]>;
  /** Stops it; its data and its port remain for the next `start`. */
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

interface QueryJson {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value?: readonly [number, string];
      readonly values?: readonly (readonly [number, string])[];
    }[];
  };
}

/** A running one, or the reason why this host cannot have it. */
export async function startPrometheus(): Promise<Prometheus | string> {
  const image = await testImage("metrics");
  if (typeof image === "string") return image;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-prometheus-"));
  chmodSync(directory, 0o755);
  const data = join(directory, "data");
  mkdirSync(data);
  if (process.getuid?.() === 0) chownSync(data, testUid, testUid);
  const config = join(directory, "prometheus.yml");
  writeFileSync(config, "{}\n");
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const argv = [
    "prometheus",
    `--config.file=${config}`,
    `--storage.tsdb.path=${data}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--web.enable-remote-write-receiver",
  ];
  const run = () => image.start(argv, [directory], /Server is ready to receive web requests/);
  let running = await run();

  async function evaluate(query: string): Promise<QueryJson["data"]["result"]> {
    const response = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query })}`);
    return ((await response.json()) as QueryJson).data.result;
  }

  return {
    url,
    async newest(query) {
      const [first] = await evaluate(query);
      return first?.value === undefined ? undefined : { labels: first.metric, value: Number(first.value[1]) };
    },
    async series(query, minutes = 15) {
      const found = await evaluate(`${query}[${minutes}m]`);
      return found.map(({ metric, values = [] }) => ({
        metric,
        values: values.map(([, value]) => Number(value)),
        timestamps: values.map(([seconds]) => Math.round(seconds * 1_000)),
      }));
    },
    stop: () => running.end("SIGTERM"),
    async start() {
      running = await run();
    },
    async remove() {
      await running.end("SIGTERM");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
