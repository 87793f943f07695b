import type { DataSnapshot } from "#operation/data-snapshot.ts";

/**
 * A canary of an image: it runs over a service's data while no client is admitted. All writes since the snapshot of the
 * data are the engine's own, so a rollback may restore the snapshot.
 */
export interface ImageCanary {
  /** Id of the operation, which is also the name of each node's snapshot. */
  readonly operationId: string;
  /** First generation of the settings that admit no client. */
  readonly generation: number;
  /**
   * True if it is certain that no client's write reaches the data once the machines are stopped. Written before they
   * are stopped; absent until then, and if an agent did not answer.
   */
  readonly writesFenced?: boolean;
  /** The old image returns, and the data are restored from the snapshot. */
  readonly dataRolledBack?: true;
}

/** State of one node's machine while its engine gets settings that admit no client. */
export interface FencedNode {
  /** The machine runs from the old image and has no order to stop. */
  readonly isUntouched: boolean;
  /** Its agent is connected and has reported since the machine's start. */
  readonly isConnected: boolean;
  /** Generation of the newest settings on the machine's disk: its engine never starts with older ones. */
  readonly storedGeneration: number;
}

/** True if the engine of every node starts with settings that admit no client, whatever starts it. */
export function excludesClients(canary: ImageCanary, nodes: readonly FencedNode[]): boolean {
  return nodes.every(
    ({ isUntouched, isConnected, storedGeneration }) =>
      isUntouched && isConnected && storedGeneration >= canary.generation,
  );
}

/**
 * The value of `writesFenced` to write now; undefined for none. A change of users or databases in progress may
 * reach the engine at any time and must not be undone after it was acknowledged. No change begins during a canary.
 */
export function writeFenceOf(
  canary: ImageCanary | undefined,
  nodes: readonly FencedNode[],
  isChanging: boolean,
): boolean | undefined {
  if (canary === undefined || canary.writesFenced !== undefined || !excludesClients(canary, nodes)) return undefined;
  return !isChanging;
}

/** The reason why a rollback retains the current data; undefined if it restores the snapshot. */
export function reasonToRetainData(canary: ImageCanary | undefined): string | undefined {
  if (canary === undefined) return "Clients had been admitted, and their writes are retained.";
  return canary.writesFenced === true
    ? undefined
    : "It is not certain that nothing was written since, so the data are unchanged.";
}

/**
 * Advice for users when the old engine does not come up again either. A restore to the point that was recorded
 * before the update is the alternative: another service, without later writes.
 */
export function recoveryAdvice(snapshot: DataSnapshot | undefined, restorePoint?: number): string {
  const restore =
    restorePoint === undefined
      ? "Restore a backup"
      : `Restore the service to ${new Date(restorePoint).toISOString()}, before the update`;
  const next = `${restore}, or ask the operator of the platform.`;
  if (snapshot?.outcome === "restored") return `The data are as they were before the update. ${next}`;
  if (snapshot?.outcome === "taken")
    return `All data are there. A snapshot from before the update is retained. ${snapshot.reason} ${next}`;
  const reason = snapshot === undefined || snapshot.reason === "" ? "" : ` ${snapshot.reason}`;
  return `All data are there, and there is no snapshot from before the update.${reason} ${next}`;
}
