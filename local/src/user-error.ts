/** An error that the user can correct; printed without a stack. */
export class UserError extends Error {
  override readonly name = "UserError";
}
