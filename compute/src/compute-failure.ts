/**
 * The host cannot do what was asked. The message is for the user: what stands against it, with figures or the command that helps.
 * What programs of the host said word by word is its cause, which the operator's log has.
 */
export class ComputeFailure extends Error {
  override readonly name = "ComputeFailure";
}

/** It will be possible later without anybody's doing; the message says what is under way. */
export class ComputePending extends Error {
  override readonly name = "ComputePending";
}

/**
 * The host did not answer, so nothing is known of its machines: they are neither gone nor stopped, and nothing that was
 * ordered may be taken for done or not done. The message names the host.
 */
export class HostUnreachable extends Error {
  override readonly name = "HostUnreachable";
  readonly hostId: string;

  constructor(hostId: string, reason: string) {
    super(`Host ${hostId} does not answer: ${reason}`);
    this.hostId = hostId;
  }
}

/** For users: why a start came to nothing, in the words of what went wrong; undefined when it left none. */
export function startFailureSentence(words: string | undefined): string {
  if (words === undefined) return "The machine ended while it was started. It is started again by itself.";
  return `The machine could not be started: ${words}`;
}

/** Did the host's disk, or our share of it, have no room? */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}
