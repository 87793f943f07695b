import { HoldfastError } from "@holdfast/common/errors.ts";

interface Session {
  readonly pid: number;
  readonly startedUs: bigint;
}

/** Names a session by its pid and start, so that it is no other one that gets the pid later. */
export function queryRunId(session: Session | undefined): string {
  return session === undefined ? "" : `${session.pid}-${session.startedUs}`;
}

/** Throws OBJECT_NOT_FOUND for what is no such name. */
export function sessionOf(id: string): Session {
  const [, pid, startedUs] = /^([1-9]\d{0,8})-([1-9]\d{0,17})$/.exec(id) ?? [];
  if (pid === undefined || startedUs === undefined)
    throw new HoldfastError("OBJECT_NOT_FOUND", `There is no session ${id}.`);
  return { pid: Number(pid), startedUs: BigInt(startedUs) };
}
