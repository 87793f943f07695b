import { CommanderError, InvalidArgumentError } from "commander";
import { ApiError, Conflict, Forbidden, NotFound, Unauthenticated, ValidationFailed } from "../errors.ts";
import { SettingsError } from "../node/profiles.ts";
import { DeploymentFailed } from "../projects.ts";
import { MigrationFailed, StackFailed } from "../stacks.ts";
import { ServiceFailed, WaitTimedOut } from "../wait.ts";

/** The command was used in a way that it does not have. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** No credentials were found. */
export class NotSignedIn extends Error {
  override readonly name = "NotSignedIn";
}

/** A program that the command started ended with this code. */
export class ChildEnded extends Error {
  override readonly name = "ChildEnded";
  readonly code: number;

  constructor(code: number) {
    super(`the program ended with ${code}`);
    this.code = code;
  }
}

/** Somebody ended the command by Ctrl-C or a signal. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  /** True for a signal that a started program does not get from the terminal. */
  readonly endsChildren: boolean;

  constructor(message = "interrupted", { endsChildren = false } = {}) {
    super(message);
    this.endsChildren = endsChildren;
  }
}

/** What each exit code means. */
export const exitCodes: Readonly<Record<number, string>> = {
  0: "done",
  1: "failed: no answer, or an error of the platform",
  2: "the command line or a value in it is wrong, or there was no terminal to ask on",
  3: "not signed in, or the credential lacks a right",
  4: "there is no such thing",
  5: "not in this state: taken, busy with another operation, a quota used up",
  6: "it was not there when the time to wait was over",
  7: "the service came to Error; the deployment, the stack or its migration failed",
  130: "interrupted",
};

/** What was waited for came to a bad end. */
const failures = [ServiceFailed, DeploymentFailed, StackFailed, MigrationFailed];

/** By exitCodes; a program that was started gives its own. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof ChildEnded) return error.code;
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof UsageError || error instanceof SettingsError || error instanceof ValidationFailed) return 2;
  if (error instanceof NotSignedIn || error instanceof Unauthenticated || error instanceof Forbidden) return 3;
  if (error instanceof NotFound) return 4;
  if (error instanceof Conflict) return 5;
  if (error instanceof WaitTimedOut) return 6;
  if (failures.some((failure) => error instanceof failure)) return 7;
  return error instanceof Interrupted ? 130 : 1;
}

/** The message for standard error; undefined when commander or the started program has printed its own. */
export function messageOf(error: unknown): string | undefined {
  // Commander has not printed errors that a command's own parsers throw.
  if (error instanceof InvalidArgumentError) return error.message;
  if (error instanceof CommanderError || error instanceof ChildEnded) return undefined;
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  const faults = error.problem.errors.map((fault) => `  ${fault.field === "" ? "body" : fault.field}: ${fault.detail}`);
  const request = error.status >= 500 && error.requestId !== "" ? [`  request ${error.requestId}`] : [];
  const head = faults.length > 0 ? error.problem.title : error.message;
  const signIn =
    error instanceof Unauthenticated ? ["  holdfast login signs in anew; holdfast profile show tells who asks"] : [];
  return [`${head} (${error.code})`, ...faults, ...request, ...signIn].join("\n");
}
