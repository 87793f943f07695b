import type { DataSnapshot } from "#operation/operation.ts";

/**
 * The canary of a new image: its engine runs over a service's data while no client is admitted. Only the engine itself
 * has written since the snapshot of the data, so a rollback may restore the snapshot.
 */
export interface ImageCanary {
  /** Id of the operation, which is also the name of each node's snapshot. */
  readonly operationId: string;
  /** First generation of settings that admit no client. */
  readonly generation: number;
  /**
   * True if it is certain that no write of a client reaches the data after the machines stop. Decided before they stop;
   * absent until then, false if an agent did not confirm.
   */
  readonly writesFenced?: boolean;
  /** True if the rollback restores the data from the snapshot, besides the old image. */
  readonly dataRolledBack?: true;
}

/** State of one node's machine while its engine gets settings that admit no client. */
export interface FencedNode {
  /** True if the machine runs from the old image and has no order to stop. */
  readonly isUntouched: boolean;
  /** True if the machine's agent is connected and has reported since the machine's start. */
  readonly isConnected: boolean;
  /** Generation of the newest settings on the machine's disk: its engine never starts with older ones. */
  readonly storedGeneration: number;
}

/** True if every node has stored settings that admit no client, so that no start of its engine admits clients. */
export function excludesClients(canary: ImageCanary, nodes: readonly FencedNode[]): boolean {
  return nodes.every(
    ({ isUntouched, isConnected, storedGeneration }) =>
      isUntouched && isConnected && storedGeneration >= canary.generation,
  );
}

/**
 * The value of `writesFenced` to write now; undefined for none. It is false during a change of users or databases,
 * which may reach the engine at any time and must not be undone after it was acknowledged. No change starts during a
 * canary.
 */
export function writeFenceOf(
  canary: ImageCanary | undefined,
  nodes: readonly FencedNode[],
  isChanging: boolean,
): boolean | undefined {
  if (canary === undefined || canary.writesFenced !== undefined || !excludesClients(canary, nodes)) return undefined;
  return !isChanging;
}

/** Reason why a rollback retains the current data; undefined if it restores the snapshot. */
export function reasonToRetainData(canary: ImageCanary | undefined): string | undefined {
  if (canary === undefined) return "Clients had been admitted, and their writes are retained.";
  return canary.writesFenced === true
    ? undefined
    : "It is not certain that clients have written nothing since, so the data are unchanged.";
}

/**
 * Advice for users if the old engine does not start again either. The alternative is a restore to the point that was
 * recorded before the update, into another service, without later writes.
 */
export function recoveryAdvice(snapshot: DataSnapshot | undefined, restorePoint?: number): string {
  const restore =
    restorePoint === undefined
      ? "Restore a backup"
      : `Restore the service to ${new Date(restorePoint).toISOString()}, before the update`;
  const next = `${restore}, or ask the operator of the platform.`;
  if (snapshot?.outcome === "restored") return `The data are as they were before the update. ${next}`;
  if (snapshot?.outcome === "taken")
    return `No data were lost. A snapshot from before the update is retained. ${snapshot.reason} ${next}`;
  const reason = snapshot === undefined || snapshot.reason === "" ? "" : ` ${snapshot.reason}`;
  return `No data were lost, and there is no snapshot from before the update.${reason} ${next}`;
}
