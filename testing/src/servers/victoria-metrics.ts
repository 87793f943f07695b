import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testImage } from "../engines/test-image.ts";
import { freePorts } from "../platform/free-ports.ts";
import { testUid } from "../platform/platform-software.ts";
import type { StoredSeries } from "./stored-series.ts";

/** Debian's VictoriaMetrics. */
export interface VictoriaMetrics {
  /** `http://127.0.0.1:<port>`; remote write is below `/api/v1/write`, Datadog's API below `/datadog`. */
  readonly url: string;
  /** All samples of the series that match, in the order of time. */
  series(match: string): Promise<readonly StoredSeries[]>;
  /** Flushes its samples to disk first; it responds before they are flushed. */
  stop(): Promise<void>;
  /** Starts the server again after `stop`, with its data and its port. */
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** A running one, or the reason why this host cannot have it. */
export async function startVictoriaMetrics(): Promise<VictoriaMetrics | string> {
  const image = await testImage("metrics");
  if (typeof image === "string") return image;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-victoria-"));
  chmodSync(directory, 0o755);
  const data = join(directory, "data");
  mkdirSync(data);
  if (process.getuid?.() === 0) chownSync(data, testUid, testUid);
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const argv = [
    "victoria-metrics",
    `-storageDataPath=${data}`,
    `-httpListenAddr=127.0.0.1:${port}`,
    "-retentionPeriod=1y",
    "-memory.allowedBytes=256MB",
    "-inmemoryDataFlushInterval=1s",
  ];
  const run = () => image.start(argv, [directory], /started server at|starting server at/);
  let running = await run();

  return {
    url,
    async series(match) {
      await fetch(`${url}/internal/force_flush`);
      const response = await fetch(
        `${url}/api/v1/export?${new URLSearchParams({ "match[]": match, end: String(Date.now() / 1_000 + 86_400) })}`,
      );
      const lines = (await response.text()).split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line) as StoredSeries);
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
