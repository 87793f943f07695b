/** An error that the user can correct; printed without a stack. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}

/** A UserError of the command line, such as a missing `--yes`; its exit code is 2, as that of the client's commands. */
export class UsageError extends UserError {
  override readonly name = "UsageError";
}
