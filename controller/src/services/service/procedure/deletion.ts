import type { ObservedService } from "../reconcile/observed-service.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";

/** The last step removes the service and completes the operation in the same transaction. */
export const deletion: Procedure = { ...convergeToSpec, progress: deletionProgress, isComplete: () => false };

function deletionProgress(_service: unknown, { nodes, names, awaitsFinalBackup }: ObservedService): StepProgress {
  if (names !== "absent") return { step: "RemoveDNS", progressPct: 20 };
  // The backup has a separate time limit.
  if (awaitsFinalBackup === true) return { step: "FinalBackup", progressPct: 30, waits: true };
  const remaining = nodes.filter(({ machine }) => machine !== undefined);
  if (remaining.length === 0) return { step: "RemoveRecords", progressPct: 90 };
  const [silent] = remaining.flatMap(({ silentHost }) => silentHost ?? []);
  // Only an operator can end this wait, by repairing the host or declaring it destroyed.
  const waiting = silent === undefined ? {} : ({ obstacle: `WaitForHost ${silent}`, waits: true } as const);
  return { step: "RemoveServer", progressPct: 50, ...waiting };
}
