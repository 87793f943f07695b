import type { DataSnapshot } from "#operation/data-snapshot.ts";

/**
 * Another image is tried under a service's data, and as long as this is there no client is admitted: so what was written since
 * the snapshot of the data is the engine's own, and may be undone with it.
 */
export interface ImageTrial {
  /** The operation at it. The snapshot of each node's data has its id for a name. */
  readonly operationId: string;
  /** First generation of the instance whose settings admit nobody. */
  readonly generation: number;
  /**
   * Is it certain that no write of a client comes into the data once the machines are stopped? Known, and written, before they
   * are stopped; absent until then, and where the agent did not answer.
   */
  readonly sealed?: boolean;
  /** The old image comes back, and the data go back to the snapshot with it. */
  readonly dataBack?: true;
}

/** What is known of one node's machine while its engine is told to admit nobody. */
export interface SealedNode {
  /** It runs from the image that is to go, and was not told to stop yet. */
  readonly isUntouched: boolean;
  /** Its agent is there, and told since the machine's start what follows. */
  readonly isHeard: boolean;
  /** Generation of the newest settings on the machine's disk: no engine comes up there with older ones. */
  readonly keptGeneration: number;
}

/** Do all nodes come up with settings that admit nobody, whoever starts them? */
export function keepsClientsOut(trial: ImageTrial, nodes: readonly SealedNode[]): boolean {
  return nodes.every(
    ({ isUntouched, isHeard, keptGeneration }) => isUntouched && isHeard && keptGeneration >= trial.generation,
  );
}

/**
 * Pure: what is to be written of the seal now; undefined when nothing is. A change of users or databases that is under way may
 * reach the engine at any time, and nobody may be told of one that is undone: none begins while an image is tried.
 */
export function sealOf(
  trial: ImageTrial | undefined,
  nodes: readonly SealedNode[],
  isChanging: boolean,
): boolean | undefined {
  if (trial === undefined || trial.sealed !== undefined || !keepsClientsOut(trial, nodes)) return undefined;
  return !isChanging;
}

/** Pure: why the data stay as they are though the old image comes back; undefined when they go back to the snapshot with it. */
export function reasonToKeepData(trial: ImageTrial | undefined): string | undefined {
  if (trial === undefined) return "Clients had been admitted, and what they wrote is kept.";
  return trial.sealed === true
    ? undefined
    : "It is not certain that nothing was written since, so the data stayed as they are.";
}

/**
 * Pure: what a user reads beside the fault of the old engine, when it does not come up again either. A restore to the point that
 * was noted before the update is the second way back: into another service, without what was written since.
 */
export function recoveryAdvice(snapshot: DataSnapshot | undefined, restorePoint?: number): string {
  const restore =
    restorePoint === undefined
      ? "Restore a backup"
      : `Restore the service to ${new Date(restorePoint).toISOString()}, before the update`;
  const next = `${restore}, or ask the operator of the platform.`;
  if (snapshot?.outcome === "restored") return `The data are as they were before the update. ${next}`;
  if (snapshot?.outcome === "taken")
    return `All data are there. A snapshot from before the update is kept. ${snapshot.reason} ${next}`;
  return `All data are there, and there is no snapshot from before the update. ${snapshot?.reason ?? ""} ${next}`.replace(
    "  ",
    " ",
  );
}
