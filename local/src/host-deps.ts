import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import type { UpDeps } from "./with-platform.ts";

/** Dependencies of this package's programs on the host. */
export function hostDeps(): UpDeps {
  // The variable of the channel to the launcher is only for this process, not for its children.
  const { NODE_CHANNEL_FD: _, ...environment } = process.env;
  return {
    checkout: join(import.meta.dirname, "..", ".."),
    environment: Object.fromEntries(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
    asRoot: process.getuid?.() === 0,
    clock: { ...systemClock, sleep: async (ms: number) => setTimeout(ms) },
    print(line) {
      process.stderr.write(line.startsWith("\n") ? `${line}\n` : `holdfast: ${line}\n`);
    },
    registryDir: process.env["HOLDFAST_REGISTRY"] ?? "/var/tmp/holdfast-loopback",
  };
}
