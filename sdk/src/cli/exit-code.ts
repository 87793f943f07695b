import { CommanderError } from "commander";
import { ApiError, Conflict, Forbidden, NotFound, Unauthenticated, ValidationFailed } from "../errors.ts";
import { ServiceFailed, WaitTimedOut } from "../wait.ts";

/** The command was used in a way that it does not have. */
export class UsageError extends Error {
  override readonly name = "UsageError";
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

/** The command was told to end. */
export class Terminated extends Error {
  override readonly name = "AbortError";
}

/**
 * 0 ok, 1 failed, 2 usage, 3 not signed in or forbidden, 4 not found, 5 conflict, 6 timed out waiting, 7 the target
 * reached Error, 130 interrupted; a started program's own code.
 */
export function exitCodeOf(error: unknown): number {
  if (error instanceof ChildEnded) return error.code;
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof UsageError || error instanceof ValidationFailed) return 2;
  if (error instanceof Unauthenticated || error instanceof Forbidden) return 3;
  if (error instanceof NotFound) return 4;
  if (error instanceof Conflict) return 5;
  if (error instanceof WaitTimedOut) return 6;
  if (error instanceof ServiceFailed) return 7;
  return isAbort(error) ? 130 : 1;
}

/** What is said on standard error; nothing for what commander or the started program has said. */
export function messageOf(error: unknown): string | undefined {
  if (error instanceof CommanderError || error instanceof ChildEnded) return undefined;
  if (isAbort(error)) return "interrupted";
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  const faults = error.problem.errors.map((fault) => `  ${fault.field === "" ? "body" : fault.field}: ${fault.detail}`);
  const request = error.status >= 500 && error.requestId !== "" ? [`  request ${error.requestId}`] : [];
  const head = faults.length > 0 ? error.problem.title : error.message;
  return [`${head} (${error.code})`, ...faults, ...request].join("\n");
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
