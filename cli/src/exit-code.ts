import { CommanderError, InvalidArgumentError } from "commander";
import { ApiError, Conflict, Forbidden, NotFound, Unauthenticated, ValidationFailed } from "@holdfast/sdk/errors.ts";
import { SettingsError } from "@holdfast/sdk/node/profiles.ts";
import { DeploymentFailed } from "@holdfast/sdk/projects.ts";
import { MigrationFailed, StackFailed } from "@holdfast/sdk/stacks.ts";
import { OperationFailed, ServiceFailed, WaitTimedOut } from "@holdfast/sdk/wait.ts";

/** The command line is wrong. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** There are no credentials. */
export class NotSignedIn extends Error {
  override readonly name = "NotSignedIn";
}

/** A program that the command started, such as psql, exited with this code. */
export class ChildEnded extends Error {
  override readonly name = "ChildEnded";
  readonly code: number;

  constructor(code: number) {
    super(`the program exited with ${code}`);
    this.code = code;
  }
}

/** The awaited change or the requested test has failed. */
export class WorkFailed extends Error {
  override readonly name = "WorkFailed";
}

/** Ctrl-C or a signal ended the command. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  /** True if the terminal does not send the signal to started programs, so this program must. */
  readonly endsChildren: boolean;

  constructor(message = "interrupted", { endsChildren = false } = {}) {
    super(message);
    this.endsChildren = endsChildren;
  }
}

/** Meanings of exit codes. */
export const exitCodes: Readonly<Record<number, string>> = {
  0: "done",
  1: "failed: no response, or an error of the platform",
  2: "the command line or a value in it is wrong, or there was no terminal to ask on",
  3: "not signed in, or the credential lacks a scope",
  4: "not found",
  5: "not possible now: name taken, another operation in progress, or quota exceeded",
  6: "the wait timed out",
  7: "the service has the status Error; the operation, deployment, stack, migration, sign-in or test failed",
  130: "interrupted",
};

/** Failures of an awaited change or a requested test. */
const failures = [WorkFailed, OperationFailed, ServiceFailed, DeploymentFailed, StackFailed, MigrationFailed];

/** The exit code of an error; the exit code of a started program is passed on. */
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

/** The message for standard error; undefined if commander or the started program has printed one. */
export function messageOf(error: unknown): string | undefined {
  // Commander does not print errors that our parsers of flags throw.
  if (error instanceof InvalidArgumentError) return error.message;
  if (error instanceof CommanderError || error instanceof ChildEnded) return undefined;
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  const faults = error.problem.errors.map((fault) => `  ${fault.field === "" ? "body" : fault.field}: ${fault.detail}`);
  const request = error.status >= 500 && error.requestId !== "" ? [`  request ${error.requestId}`] : [];
  const head = faults.length > 0 ? error.problem.title : error.message;
  // The faults say what to change.
  const help = faults.length > 0 ? undefined : (commandHelp.get(error.code) ?? error.help);
  return [`${head} (${error.code})`, ...faults, ...request, ...(help === undefined ? [] : [`  ${help}`])].join("\n");
}

/** Advice of errors whose remedy is a command; the API's own advice names requests. */
const commandHelp: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({
    unauthenticated: "sign in again with holdfast login; holdfast profile show has the current user",
    organization_required: "name one of your organizations by --organization; holdfast orgs list has their ids",
    deletion_protected:
      "holdfast services update SERVICE --no-deletion-protection allows it, or holdfast files update for a files service",
    attachment_in_use:
      "holdfast apps detach APP SERVICE ends an attachment; a database that has an app's end users also needs" +
      " holdfast auth disable APP before",
    app_not_hosted: "create an app with an image: holdfast apps create NAME --image IMAGE",
    password_not_known: "holdfast users password SERVICE USER --reset sets a new password",
    smtp_required:
      "name a mail server by --smtp HOST:PORT and --from ADDRESS; --smtp-ca FILE trusts a private authority",
  }),
);
