import type { ObjectFacts } from "@holdfast/common/objects/object-store.ts";
import { again, type Reconciler } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import { type SnapshotDeps, takeSnapshot } from "./snapshot.ts";
import { snapshotPrefix } from "./snapshot-line.ts";

const everyMs = 3_600_000;
const keep = 48;

/** Takes a snapshot of the control plane each hour, and keeps the newest 48. */
export function createSnapshotReconciler(deps: SnapshotDeps): ControlLoop {
  const { objects, clock, log } = deps;
  const reconciler: Reconciler = {
    name: "control-plane-snapshot",
    async reconcile(_key, signal) {
      const before = await snapshots(deps);
      const age = clock.now() - (before.at(-1)?.modifiedAt ?? 0);
      // A clock that went back by hours makes the newest one lie ahead: that is no reason to wait.
      if (Math.abs(age) < everyMs) return again(everyMs - Math.max(0, age), "the last snapshot is young");
      const taken = await takeSnapshot(deps, signal);
      log.info("control plane snapshot", { id: taken.id, sizeBytes: taken.sizeBytes });
      for (const { key } of before.slice(0, Math.max(0, before.length + 1 - keep))) await objects.delete(key);
      return again(everyMs, "the next hour");
    },
  };
  return { reconciler, keys: () => ["control-plane"], concurrency: 1, deadlineMs: 15 * 60_000 };
}

/** Every snapshot, the oldest first. */
export async function snapshots({ objects }: Pick<SnapshotDeps, "objects">): Promise<ObjectFacts[]> {
  const found: ObjectFacts[] = [];
  for (let more = true; more; ) {
    const after = found.at(-1)?.key;
    const page = await objects.list(snapshotPrefix, { limit: 200, ...(after !== undefined && { after }) });
    found.push(...page.objects);
    more = page.more;
  }
  return found;
}
