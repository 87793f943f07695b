import type { ObservedService } from "../observed-service.ts";
import { holdToSpec } from "./hold-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";

/** Its last step takes the service away, and ends the operation in the same transaction. */
export const deletion: Procedure = { ...holdToSpec, progress: deletionProgress, isReached: () => false };

function deletionProgress(_service: unknown, { nodes, names, awaitsFinalBackup }: ObservedService): StepProgress {
  if (names !== "absent") return { step: "RemoveDNS", progressPct: 20 };
  // The backup has a time limit of its own.
  if (awaitsFinalBackup === true) return { step: "FinalBackup", progressPct: 30, waits: true };
  const left = nodes.filter(({ machine }) => machine !== undefined);
  if (left.length === 0) return { step: "RemoveRecords", progressPct: 90 };
  const [silent] = left.flatMap(({ silentHost }) => silentHost ?? []);
  // An operator brings the host back, or says that it is destroyed; either ends it, and nothing else may.
  const waiting = silent === undefined ? {} : ({ obstacle: `WaitForHost ${silent}`, waits: true } as const);
  return { step: "RemoveServer", progressPct: 50, ...waiting };
}
