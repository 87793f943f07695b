import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf } from "../api/clients.ts";
import type { Platform } from "../platform/platform.ts";
import type { RunningService } from "../platform/services.ts";

/** Calls `work` with a directory that has the authority of a service in `ca.pem`, and its names in `hosts`. */
export async function withClientFiles<T>(
  platform: Platform,
  { connection }: Pick<RunningService, "connection">,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-client-"));
  try {
    chmodSync(directory, 0o755);
    const { host, ca_certificate: ca, nodes } = connection;
    const names = [host, ...nodes.flatMap(({ hostname, private_hostname: privateName }) => [hostname, privateName])];
    const lines = await Promise.all(names.map(async (name) => `${await addressOf(platform, name)} ${name}\n`));
    writeFileSync(join(directory, "hosts"), lines.join(""));
    writeFileSync(join(directory, "ca.pem"), ca);
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Command line of a program of a test image that resolves names by this file of hosts in place of the image's own. */
export function withHosts(hosts: string, argv: readonly string[]): string[] {
  const script = `mount --bind "$0" /etc/hosts && exec "$@"`;
  return ["/usr/bin/unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, hosts, ...argv];
}
