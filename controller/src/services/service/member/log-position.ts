/** A position in a log and the history that it belongs to; empty where timelines tell histories apart. */
export interface LogEnd {
  readonly position: string;
  readonly history: string;
}

/** The position up to which a replica has replayed its primary's log. */
export interface Replayed {
  readonly replayedPosition: string;
  readonly history: string;
}

/**
 * A log position as a number: an LSN of PostgreSQL such as `0/5000148` (two hexadecimal halves), or an offset of Valkey
 * in bytes such as `73012`. 0 for any other text.
 */
export function positionOf(text: string): bigint {
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  const found = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  return found === null ? 0n : (BigInt(`0x${found[1]}`) << 32n) | BigInt(`0x${found[2]}`);
}

/** Pure: bytes that the replica lacks. A replica with another history lacks all data. */
export function lagOf(primary: LogEnd, replica: Replayed): bigint {
  const has = replica.history === primary.history ? positionOf(replica.replayedPosition) : 0n;
  const lag = positionOf(primary.position) - has;
  return lag > 0n ? lag : 0n;
}

/**
 * Pure: true if the replica has replayed beyond this end of a log. An end without a history compares by position alone.
 */
export function hasReplayedBeyond(replica: Replayed, end: LogEnd): boolean {
  const isSame = end.history === "" || replica.history === end.history;
  return isSame && positionOf(replica.replayedPosition) > positionOf(end.position);
}
