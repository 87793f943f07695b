/** A position in a log, and whose writes it counts: empty where timelines say that. */
export interface LogEnd {
  readonly position: string;
  readonly history: string;
}

/** What a replica has replayed of its primary's log. */
export interface Replayed {
  readonly replayedPosition: string;
  readonly history: string;
}

/** A position in PostgreSQL's log, X/Y in hexadecimal, or in valkey's stream, in bytes; 0 for what is none. */
export function positionOf(text: string): bigint {
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  const found = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  return found === null ? 0n : (BigInt(`0x${found[1]}`) << 32n) | BigInt(`0x${found[2]}`);
}

/** Pure: bytes that the replica lacks. A replica with another history gets all data anew. */
export function lagOf(primary: LogEnd, replica: Replayed): bigint {
  const has = replica.history === primary.history ? positionOf(replica.replayedPosition) : 0n;
  const lag = positionOf(primary.position) - has;
  return lag > 0n ? lag : 0n;
}

/** Pure: has the replica replayed more than what ended there? An end without a history is that of an older agent. */
export function isBeyond(replica: Replayed, end: LogEnd): boolean {
  const isSame = end.history === "" || replica.history === end.history;
  return isSame && positionOf(replica.replayedPosition) > positionOf(end.position);
}
