import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ArchiveObject } from "./archive.ts";
import type { BackupCreation } from "../backup-creation.ts";
import type { BackupIndex, BackupObject } from "../backup.ts";
import type { BackupKeyObject } from "../backup-key.ts";
import type { DrillIndex, DrillObject } from "../drill/drill.ts";

export interface ArchiveWorkDeps extends BackupCreation {
  readonly archives: Collection<ArchiveObject>;
  readonly backups: Collection<BackupObject>;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly index: BackupIndex;
  readonly services: Collection<ManagedServiceObject>;
  readonly drillIndex: Pick<DrillIndex, "of">;
  readonly drills: Pick<Collection<DrillObject>, "get" | "subscribe">;
  readonly fleet: Pick<Fleet, "observation">;
  readonly organizations: Pick<Collection<unknown>, "get" | "getCurrent">;
  readonly machines: Pick<Collection<MachineObject>, "get" | "getCurrent">;
  /** Ids of the services and drills that a restore from this backup is in progress for. */
  readonly readersOf: (backupId: string) => readonly string[];
  /** True while an operator defers deletions and key rotations that are due. */
  readonly expiryDeferred: () => boolean;
  readonly objects: ObjectStore;
  /** Delay from a new service's first Running to its first automated backup, in milliseconds. */
  readonly firstBackupDelayMs: number;
  /** Time for which a failed final backup is retried, in milliseconds. */
  readonly finalBackupTimeoutMs: number;
  readonly sealer: Sealer;
  readonly catalog: CatalogData;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/** Pause before a deferred deletion is checked again. */
export const deferredRecheckMs = 60_000;
const dayMs = 86_400_000;

/** Reconciles again after the shortest of the waits, at most a day later: Node's timers overflow at 2^31 ms. */
export function recheckAfter(waits: readonly (number | null)[]): ReconcileOutcome {
  const timed = waits.filter((ms) => ms !== null);
  return timed.length === 0 ? settled : again(Math.max(1_000, Math.min(...timed, dayMs)), "next backup, expiry or key");
}
