import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { openPrograms } from "./programs.ts";
import type { UpDeps } from "./with-platform.ts";

/** Dependencies of this package's programs on the host. */
export function hostDeps(): UpDeps {
  // The variable of the channel to the launcher is only for this process, not for its children.
  const { NODE_CHANNEL_FD: _, ...inherited } = process.env;
  const checkout = join(import.meta.dirname, "..", "..");
  const environment = Object.fromEntries(
    Object.entries(inherited).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const print = (line: string) => {
    process.stderr.write(line.startsWith("\n") ? `${line}\n` : `holdfast: ${line}\n`);
  };
  return {
    checkout,
    programs: () => openPrograms(checkout, environment, print),
    environment,
    asRoot: process.getuid?.() === 0,
    clock: { ...systemClock, sleep: async (ms: number) => setTimeout(ms) },
    print,
    registryDir: process.env["HOLDFAST_REGISTRY"] ?? "/var/tmp/holdfast-loopback",
  };
}
