import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import type { UpDeps } from "./with-platform.ts";

/** What the programs of this package need of the host that they run on. */
export function hostDeps(): UpDeps {
  // What the launcher left says something about it alone.
  const { NODE_CHANNEL_FD: _, ...environment } = process.env;
  return {
    checkout: join(import.meta.dirname, "..", ".."),
    environment: Object.fromEntries(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
    asRoot: process.getuid?.() === 0,
    clock: { ...systemClock, sleep: async (ms: number) => setTimeout(ms) },
    say(line) {
      process.stderr.write(line.startsWith("\n") ? `${line}\n` : `holdfast: ${line}\n`);
    },
    registryDir: process.env["HOLDFAST_REGISTRY"] ?? "/var/tmp/holdfast-loopback",
  };
}
