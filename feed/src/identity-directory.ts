import { watch } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Key, certificate and trusted authorities of a data plane, which a controller on the same host writes and renews. All
 * are PEM.
 */
export interface DirectoryIdentity {
  readonly key: string;
  readonly certificate: string;
  /** Authorities of the installation. */
  readonly authorities: string;
}

const pollIntervalMs = 200;
const recheckIntervalMs = 60_000;

/** Reads the identity; undefined until a controller has written one. */
export async function readIdentity(directory: string): Promise<DirectoryIdentity | undefined> {
  const read = (name: string) => readFile(join(directory, name), "utf8");
  try {
    const [key, certificate, authorities] = await Promise.all([read("key.pem"), read("cert.pem"), read("ca.pem")]);
    return { key, certificate, authorities };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Waits for the first identity; undefined if the signal aborts before. */
export async function waitForIdentity(directory: string, signal: AbortSignal): Promise<DirectoryIdentity | undefined> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  for (;;) {
    const identity = await readIdentity(directory);
    if (identity !== undefined || signal.aborted) return identity;
    await delay(pollIntervalMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Calls `onChange` when the files may have changed, and once a minute, until the signal aborts. */
export async function watchIdentity(
  directory: string,
  onChange: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let changed = Promise.withResolvers<void>();
  const watcher = watch(directory, () => changed.resolve());
  watcher.on("error", () => undefined);
  while (!signal.aborted) {
    await Promise.race([changed.promise, delay(recheckIntervalMs, undefined, { signal })]).catch(() => undefined);
    changed = Promise.withResolvers();
    if (!signal.aborted) await onChange();
  }
  watcher.close();
}
