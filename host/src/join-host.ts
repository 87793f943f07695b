import { setTimeout as sleep } from "node:timers/promises";
import { createEnrollmentKey } from "@holdfast/mtls/enrollment-key.ts";
import { tokenDigest } from "@holdfast/mtls/enrollment-file.ts";
import { createControllerEndpoints } from "@holdfast/mtls/controller-endpoints.ts";
import { createIdentityFile } from "@holdfast/mtls/machine-identity.ts";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import { enrollHost, HostRefused } from "./host-calls.ts";

export interface JoinHostDeps {
  /** Directory of the host's identity, private to this user. */
  readonly stateDir: string;
  readonly join: JoinFile;
  /** First two bytes of its machines' IPv4 addresses, such as `127.101`. */
  readonly addressBlock: string;
  readonly now: () => number;
  readonly random: () => number;
  /** Time limit for controllers that do not respond, in milliseconds; a minute if absent. */
  readonly withinMs?: number;
}

/**
 * Makes this machine a host; resolves when its certificate is in the state directory. Does nothing if the join file was
 * used here before; after a crash, the same file continues. Throws HostRefused when a controller refuses.
 */
export async function joinHost(deps: JoinHostDeps, signal: AbortSignal): Promise<void> {
  const { stateDir, join, addressBlock, now, random, withinMs = 60_000 } = deps;
  const file = createIdentityFile(stateDir);
  const before = await file.load();
  if (before !== undefined && before.installationId !== join.installation_id)
    throw new HostRefused(`${stateDir} belongs to a host of another installation; choose another --data directory`);
  const digest = tokenDigest(join.token);
  if (before?.tokenDigest === digest) return;
  const controllers = createControllerEndpoints(stateDir, []);
  await controllers.save(join.controllers);
  const enrolling = createEnrollmentKey(stateDir);
  const key = await enrolling.loadOrCreate(digest);
  const deadline = now() + withinMs;
  for (;;) {
    const address = controllers.next();
    try {
      await file.save(await enrollHost(join, addressBlock, key, address, now));
      await enrolling.delete();
      return;
    } catch (error) {
      if (error instanceof HostRefused) throw error;
      if (now() > deadline) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new HostRefused(`no controller of ${join.controllers.join(", ")} could be reached: ${reason}`);
      }
      await sleep(500 * (0.5 + random()), undefined, { signal });
    }
  }
}
