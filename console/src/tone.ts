/** Colors of states. */
export type Tone = "good" | "warn" | "bad" | "busy" | "none";

// biome-ignore format: a table, aligned so that it reads as one
const statesByTone: Readonly<Record<Exclude<Tone, "none">, readonly string[]>> = {
  good: ["Running", "Active", "Completed", "healthy", "completed", "active", "verified", "up_to_date",
         "ready", "ok", "in_place", "current", "connected"],
  warn: ["degraded", "suspended", "retiring", "exhausted", "delayed", "behind", "needs_start", "pending_restart"],
  bad:  ["Error", "Failed", "Aborted", "unhealthy", "failed", "unreachable", "Unreachable", "blocked", "rejected"],
  busy: ["Pending", "Provisioning", "ProvisioningSchema", "Wiring", "Upgrading", "RollingBack", "Deleting",
         "Deprovisioning", "Accepted", "Applying", "pending", "running", "verifying", "creating", "dropping", "deploying",
         "deleting", "upgrading", "inflight", "Deploying", "Starting"],
};

const tones: ReadonlyMap<string, Tone> = new Map(
  Object.entries(statesByTone).flatMap(([tone, states]) => states.map((state) => [state, tone as Tone] as const)),
);

/** The tone of a state of a resource; work in progress is busy. */
export function toneOf(state: string): Tone {
  return tones.get(state) ?? "none";
}

/** Time to the next request: 1 s while one of the states is in progress. */
export function pollMsOf(states: readonly string[] | undefined): number {
  return states?.some((state) => toneOf(state) === "busy") ? 1_000 : 15_000;
}
