import type { ObservedNode } from "../../reconcile/observed-service.ts";

/** True if the replica receives what its primary writes, by its agent's last report. */
export function follows({ connected, isCurrent, instance }: ObservedNode): boolean {
  const state = instance?.replication?.state;
  return connected && isCurrent && instance?.state === "running" && (state === "streaming" || state === "catchup");
}
