import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Platform } from "../platform/platform.ts";
import type { RunningService } from "../platform/services.ts";
import { pythonEnvironment } from "../servers/python-environment.ts";
import { withClientFiles } from "./client-files.ts";

/** The packages of OpenSearch's client for Python. */
export const pythonOpensearch = ["opensearch-py==3.2.0"];
const limitMs = 300_000;

/**
 * Runs our program with opensearch-py; resolves with its output. It has the file of names as the host's own in a mount
 * namespace, which needs root.
 */
export async function runPythonOpensearch(platform: Platform, service: RunningService): Promise<unknown> {
  const programs = await pythonEnvironment(pythonOpensearch);
  const { connection, password } = service;
  return withClientFiles(platform, service, async (directory) => {
    const script = 'mount --bind "$0" /etc/hosts && exec "$@"';
    const program = [join(programs, "python3"), join(import.meta.dirname, "opensearch_clients.py")];
    const { stdout } = await promisify(execFile)(
      "unshare",
      ["--mount", "sh", "-c", script, join(directory, "hosts"), ...program],
      {
        env: {
          PATH: process.env["PATH"] ?? "",
          OPENSEARCH_URL: `https://${connection.host}:${connection.port}`,
          OPENSEARCH_PASSWORD: password,
          OPENSEARCH_CA: join(directory, "ca.pem"),
        },
        timeout: limitMs,
      },
    );
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  });
}
