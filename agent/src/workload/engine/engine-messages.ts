import type { EngineFailure } from "../../engines/engine-driver.ts";

/** Explanation for users of an error by the engine or the connection to it. */
export interface Explanation {
  readonly kind: "too_many_clients" | "disk_full" | "port_busy" | "out_of_memory" | "other";
  readonly reason: string;
}

// biome-ignore format: a table, aligned so that it reads as one
const patterns: readonly (readonly [RegExp, Explanation["kind"], string])[] = [
  [/too many clients|remaining connection slots|max number of clients/i, "too_many_clients", "Too many clients: all connections are in use. Close some, or raise the connection limit."],
  [/no space left|disk full|ENOSPC|disk quota exceeded/i,                "disk_full",        "The disk is full. Delete data, or expand the storage."],
  [/cannot write to disk/i,                                              "disk_full",        "The disk accepts no writes: it is full, or fails. Delete data, or expand the storage."],
  [/address already in use|could not bind|EADDRINUSE/i,                  "port_busy",        "Another process listens on the engine's port."],
  [/out of memory|cannot allocate memory|could not map anonymous shared/i, "out_of_memory",  "The plan has too little memory for these settings."],
];

/** Explains known errors, such as a full disk; any other error is its own explanation, of kind "other". */
export function explain(message: string): Explanation {
  const match = patterns.find(([pattern]) => pattern.test(message));
  if (match === undefined) return { kind: "other", reason: message };
  return { kind: match[1], reason: match[2] };
}

/**
 * True if a signal killed the engine. The `unshare` that runs it cannot end by that signal itself, and ends with this
 * message.
 */
export function wasKilled(exit: { readonly signal: string | null } | null | undefined, output: string): boolean {
  return exit?.signal === "SIGKILL" || /^unshare: sigprocmask unblock failed/m.test(output);
}

const engineOutput = ({ message }: EngineFailure) => (message === "" ? "" : ` Last output: ${message}`);

// biome-ignore format: a table, aligned so that it reads as one
const failures: Record<EngineFailure["cause"], (failure: EngineFailure) => string> = {
  disk_full:     (failure) => `The disk is full, so the engine does not start. Expand the storage.${engineOutput(failure)}`,
  port_busy:     (failure) => `Another process listens on the engine's port. The engine is started again until the port is free.${engineOutput(failure)}`,
  data_damaged:  (failure) => `The engine finds its data damaged and does not start. The data were not changed. Restore a backup into a new service.${engineOutput(failure)}`,
  memory:        (failure) => `The plan has too little memory for these settings. Lower them, or choose a larger plan.${engineOutput(failure)}`,
  configuration: (failure) => `The engine does not start with these settings. ${failure.message}`,
  unknown:       (failure) => `The engine exited during its start. ${failure.message}`,
};

/** Message for users why an engine does not start and what can be done, with the engine's own message. */
export function startFailureMessage(failure: EngineFailure): string {
  return failures[failure.cause](failure).trim();
}
