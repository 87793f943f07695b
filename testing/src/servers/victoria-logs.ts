import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GoProgram } from "@holdfast/image/artifact.ts";
import { ensureGoProgram, goProgramDirectory } from "@holdfast/image/go-program.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { claimWork } from "../controller/claim.ts";
import { freePorts } from "../platform/free-ports.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { waitUntil } from "../wait-until.ts";
import { startHostProgram } from "./host-program.ts";

const victoriaLogsModule: GoProgram = {
  module: "github.com/VictoriaMetrics/VictoriaLogs",
  version: "v1.52.2",
  sum: "h1:pQ+odZC8cyAkths0NXqgr8lXtqB8r54THEIrS8kz1ik=",
  package: "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs",
};
const buildMs = 1_800_000;

/** Path of the program, built at the first call (some minutes); `{ why }` where this host cannot have it. */
async function victoriaLogsProgram(): Promise<string | { readonly why: string }> {
  const imagesDir = imagesDirectory(process.env);
  const isThere = async () =>
    existsSync(goProgramDirectory(victoriaLogsModule, imagesDir)) || claimWork("victoria-logs");
  await waitUntil("VictoriaLogs is built", isThere, { withinMs: buildMs, everyMs: 500 });
  try {
    const progress = (line: string) => console.error(line);
    const directory = await ensureGoProgram(victoriaLogsModule, { imagesDir, uid: testUid, asRoot, progress });
    return join(directory, "victoria-logs");
  } catch (error) {
    if (error instanceof ImageImpossible) return { why: error.message };
    throw error;
  }
}

/** VictoriaLogs as a single process, with its data on disk. */
export interface VictoriaLogs {
  /** `http://127.0.0.1:<port>`; Loki's push API is below `/insert`. */
  readonly url: string;
  /** Entries of a tenant (by headers) that match a LogsQL query: texts, with `_time` in RFC 3339. */
  entries(
    query: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<readonly Readonly<Record<string, string>>[]>;
  remove(): Promise<void>;
}

/** A running one, or the reason why this host cannot have it. */
export async function startVictoriaLogs(): Promise<VictoriaLogs | string> {
  const program = await victoriaLogsProgram();
  if (typeof program === "object") return program.why;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-victoria-logs-"));
  chmodSync(directory, 0o755);
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const argv = [program, `-storageDataPath=${directory}`, `-httpListenAddr=127.0.0.1:${port}`, "-retentionPeriod=7d"];
  const running = await startHostProgram(argv, /started server at/);

  return {
    url,
    async entries(query, headers = {}) {
      await fetch(`${url}/internal/force_flush`);
      const response = await fetch(`${url}/select/logsql/query?${new URLSearchParams({ query, limit: "5000" })}`, {
        headers,
      });
      const lines = (await response.text()).split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line) as Record<string, string>);
    },
    async remove() {
      await running.end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
