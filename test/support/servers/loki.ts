import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../platform/free-ports.ts";
import { waitUntil } from "../wait-until.ts";
import { startHostProgram } from "./host-program.ts";
import type { GoProgram } from "@holdfast/image/artifact.ts";
import { ensureGoProgram, goProgramDirectory } from "@holdfast/image/go-program.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { claim } from "../controller/claim.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";

const lokiModule: GoProgram = {
  module: "github.com/grafana/loki/v3",
  version: "v3.7.8",
  sum: "h1:bJ0WFWVOjgvG/jYmT9fIX15SYXXDwuEu/IMgTwMA97U=",
  package: "github.com/grafana/loki/v3/cmd/loki",
  dropReplaces: ["github.com/grafana/loki/pkg/push"],
};
const buildMs = 1_800_000;

/** Path of Grafana Loki's program, built at the first call (some minutes); `{ why }` where this host cannot have it. */
async function lokiProgram(): Promise<string | { readonly why: string }> {
  const imagesDir = imagesDirectory(process.env);
  const isThere = async () => existsSync(goProgramDirectory(lokiModule, imagesDir)) || claim("loki");
  await waitUntil("the program of Loki is built", isThere, { withinMs: buildMs, everyMs: 500 });
  try {
    const progress = (line: string) => console.error(line);
    return join(await ensureGoProgram(lokiModule, { imagesDir, uid: testUid, asRoot, progress }), "loki");
  } catch (error) {
    if (error instanceof ImageImpossible) return { why: error.message };
    throw error;
  }
}

/** Grafana Loki as a single process, with its data on disk. */
export interface Loki {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Entries of the streams that match: labels, time in nanoseconds as text, and the line. */
  entries(query: string, fromMs: number): Promise<readonly LokiEntry[]>;
  remove(): Promise<void>;
}

export interface LokiEntry {
  readonly labels: Readonly<Record<string, string>>;
  readonly nanos: string;
  readonly line: string;
}

/** A running one, or the reason why this host cannot have it. */
export async function startLoki(): Promise<Loki | string> {
  const program = await lokiProgram();
  if (typeof program === "object") return program.why;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-loki-"));
  chmodSync(directory, 0o755);
  const [port = 0, grpcPort = 0] = await freePorts(2);
  const url = `http://127.0.0.1:${port}`;
  const config = {
    auth_enabled: false,
    server: {
      http_listen_address: "127.0.0.1",
      http_listen_port: port,
      grpc_listen_address: "127.0.0.1",
      grpc_listen_port: grpcPort,
    },
    common: {
      instance_addr: "127.0.0.1",
      path_prefix: directory,
      replication_factor: 1,
      ring: { kvstore: { store: "inmemory" } },
      storage: {
        filesystem: { chunks_directory: join(directory, "chunks"), rules_directory: join(directory, "rules") },
      },
    },
    schema_config: {
      configs: [
        {
          from: "2024-01-01",
          store: "tsdb",
          object_store: "filesystem",
          schema: "v13",
          index: { prefix: "index_", period: "24h" },
        },
      ],
    },
    limits_config: { reject_old_samples: true, reject_old_samples_max_age: "168h", volume_enabled: false },
    analytics: { reporting_enabled: false },
  };
  const file = join(directory, "loki.json");
  writeFileSync(file, JSON.stringify(config));
  const running = await startHostProgram([program, `-config.file=${file}`], /Loki started/);
  await waitUntil("Loki is ready", async () => (await fetch(`${url}/ready`)).ok, { withinMs: 60_000, everyMs: 500 });

  return {
    url,
    async entries(query, fromMs) {
      const requestInit = {
        query,
        start: `${fromMs}000000`,
        end: `${Date.now() + 60_000}000000`,
        limit: "5000",
        direction: "forward",
      };
      const answer = await fetch(`${url}/loki/api/v1/query_range?${new URLSearchParams(requestInit)}`);
      const { data } = (await answer.json()) as {
        data: { result: { stream: Record<string, string>; values: [string, string][] }[] };
      };
      return data.result.flatMap(({ stream: labels, values }) =>
        values.map(([nanos, line]) => ({ labels, nanos, line })),
      );
    },
    async remove() {
      await running.end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
