import { clamp } from "./clamp.ts";
import type { EngineSizing, PlanSize } from "./engine-row.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;

export const valkeySizing = {
  parameters: ({ vcpu }) => ({ "io-threads": String(clamp(Math.floor(vcpu / 2), 1, 8)) }),
  // A save forks the process and concurrent writes copy pages; the agent and buffers need memory too.
  dataMemoryBytes: ({ memoryBytes }) => Math.floor((Math.max(memoryBytes - 192 * mib, 64 * mib) * 0.65) / mib) * mib,
} satisfies EngineSizing;

/** Maximum number of user sessions of an instance. */
export function valkeyClients({ memoryBytes }: PlanSize): number {
  return Math.round(clamp((memoryBytes / gib) * 1_000, 500, 8_000));
}
