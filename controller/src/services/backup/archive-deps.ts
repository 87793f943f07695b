import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { again, type Outcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ArchiveObject } from "./archive.ts";
import type { BackupDeskDeps } from "./backup-desk.ts";
import type { BackupIndex } from "./backup-index.ts";
import type { BackupKeyObject } from "./backup-key.ts";
import type { BackupObject } from "./backup.ts";

export interface ArchiveWorkDeps extends BackupDeskDeps {
  readonly archives: Collection<ArchiveObject>;
  readonly backups: Collection<BackupObject>;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly index: BackupIndex;
  readonly services: Collection<ManagedServiceObject>;
  readonly fleet: Pick<Fleet, "observation">;
  readonly organizations: Pick<Collection<unknown>, "get" | "fresh">;
  readonly machines: Pick<Collection<MachineObject>, "get" | "fresh">;
  /** Services that are being restored from a backup. */
  readonly readersOf: (backupId: string) => readonly string[];
  /** Does anything stand against deleting, or renewing, what time has come for? */
  readonly held: () => boolean;
  readonly objects: ObjectStore;
  /** So long after it is Running a new service's first backup begins. */
  readonly firstBackupAfterMs: number;
  /** So long a final backup that fails is repeated. */
  readonly finalBackupWithinMs: number;
  readonly sealer: Sealer;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/** A time that an operator holds back is looked at again. */
export const heldMs = 60_000;
const dayMs = 86_400_000;

/** Timers of Node end at 2^31 ms; a longer wait is split. */
export function lookAgain(waits: readonly (number | null)[]): Outcome {
  const timed = waits.filter((ms) => ms !== null);
  return timed.length === 0 ? settled : again(Math.max(1_000, Math.min(...timed, dayMs)), "next backup, expiry or key");
}
