/** The host cannot do what was asked. The message is for the user: what stands against it, with figures or the command that helps. */
export class ComputeFailure extends Error {
  override readonly name = "ComputeFailure";
}

/** It will be possible later without anybody's doing; the message says what is under way. */
export class ComputePending extends Error {
  override readonly name = "ComputePending";
}
