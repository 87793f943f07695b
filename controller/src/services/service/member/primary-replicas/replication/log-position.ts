import assert from "node:assert/strict";
import { engineProfileOf } from "../../../../engine/engine-profiles.ts";
import type { LogPositions, PositionOrder } from "../../../../engine/log-positions.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";

/** A position in a log, and the history that it belongs to (empty for engines with timelines). */
export interface LogEnd {
  readonly position: string;
  readonly history: string;
}

/** The position up to which a replica has replayed its primary's log. */
export interface Replayed {
  readonly replayedPosition: string;
  readonly history: string;
}

/** Position of a member without data of its primary's history. */
const noData = "";

/**
 * The functions that compare positions of the service's engine. Throws for an engine that does not replicate from a
 * primary.
 */
export function positionsOf({ spec }: Pick<ManagedServiceObject, "spec">): LogPositions {
  const { replicas } = engineProfileOf(spec.databaseType);
  assert(replicas, `${spec.databaseType} does not replicate from a primary`);
  return replicas.positions;
}

/** The part of its primary's log that a replica lacks. */
export interface Lag {
  /** Order of the replica to its primary. A replica with another history lacks all data. */
  readonly order: PositionOrder;
  /** Undefined for an engine whose positions do not count bytes. */
  readonly bytes: bigint | undefined;
}

/** The lag of the replica behind its primary. */
export function lagOf(positions: LogPositions, primary: LogEnd, replica: Replayed): Lag {
  const has = replica.history === primary.history ? replica.replayedPosition : noData;
  return { order: positions.compare(has, primary.position), bytes: positions.bytesBetween?.(has, primary.position) };
}

/** True if the replica has replayed all of its primary's log. */
export function isWithoutLag({ order }: Lag): boolean {
  return order === "same" || order === "after";
}

/**
 * True if the replica has replayed beyond this end of a log. For an end without a history only positions are compared.
 */
export function hasReplayedBeyond(positions: LogPositions, replica: Replayed, end: LogEnd): boolean {
  const isSame = end.history === "" || replica.history === end.history;
  return isSame && positions.compare(end.position, replica.replayedPosition) === "before";
}
