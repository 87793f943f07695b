import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testImage } from "@holdfast/testing/engines/test-image.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { testUid } from "@holdfast/testing/platform/platform-software.ts";

/** Debian's vmagent, which receives remote write and forwards it, with its queue on disk. */
export interface VmAgent {
  readonly pid: number;
  /** URL of its remote write endpoint. */
  readonly url: string;
  /** Bytes sent so far. */
  sentBytes(): Promise<number>;
  remove(): Promise<void>;
}

/** Sends to the URL with snappy, like Holdfast's export. */
export async function startVmAgent(to: string): Promise<VmAgent> {
  const image = await testImage("metrics");
  if (typeof image === "string") throw new Error(image);
  const directory = mkdtempSync(join(tmpdir(), "holdfast-vmagent-"));
  chmodSync(directory, 0o755);
  if (process.getuid?.() === 0) chownSync(directory, testUid, testUid);
  const [port = 0] = await freePorts(1);
  const argv = [
    "vmagent",
    `-remoteWrite.url=${to}`,
    "-remoteWrite.forcePromProto=true",
    "-remoteWrite.flushInterval=100ms",
    "-remoteWrite.queues=1",
    `-remoteWrite.tmpDataPath=${directory}`,
    `-httpListenAddr=127.0.0.1:${port}`,
  ];
  const running = await image.start(argv, [directory], /started vmagent|starting server at/);
  const url = `http://127.0.0.1:${port}`;

  async function sentBytes(): Promise<number> {
    const text = await (await fetch(`${url}/metrics`)).text();
    const lines = text.matchAll(/^vmagent_remotewrite_bytes_sent_total(?:\{[^}]*\})? (\S+)$/gm);
    return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
  }

  return {
    pid: running.pid,
    url: `${url}/api/v1/write`,
    sentBytes,
    async remove() {
      await running.end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
