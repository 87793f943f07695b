/**
 * The host cannot perform the request. The message is a sentence for the user: the obstacle, with figures or the
 * command that helps. The output of host programs is the `cause`, which only the operator's log has.
 */
export class ComputeFailure extends Error {
  override readonly name = "ComputeFailure";
}

/** The request becomes possible later without any action; the message names what is in progress. */
export class ComputePending extends Error {
  override readonly name = "ComputePending";
}

/**
 * The host did not respond, so the state of its machines is unknown: they are neither absent nor stopped, and no
 * request counts as done or not done. The message names the host.
 */
export class HostUnreachable extends Error {
  override readonly name = "HostUnreachable";
  readonly hostId: string;

  constructor(hostId: string, reason: string) {
    super(`Host ${hostId} does not respond: ${reason}`);
    this.hostId = hostId;
  }
}

/** The reason of a failed start as a sentence for users; `reason` is undefined when the start left none. */
export function startFailureSentence(reason: string | undefined): string {
  if (reason === undefined) return "The machine ended while it was started. It is restarted automatically.";
  return `The machine could not be started: ${reason}`;
}

/** True if the host's disk, or this process's quota on it, is full. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}
