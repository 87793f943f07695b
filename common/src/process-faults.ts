type After = "serve" | "end";

/** Reaction of each kind of process to a fault that no code handled. */
const after = {
  /** The supervisor restarts it. An exception may leave inconsistent state behind, which a restart does not have. */
  server: { rejection: "serve", exception: "end" },
  /** A supervisor's exit would also end the processes that it supervises. */
  supervisor: { rejection: "serve", exception: "serve" },
  /** A job has no clients, and a partial failure must not look like a complete result. */
  job: { rejection: "end", exception: "end" },
} as const satisfies Record<string, { readonly rejection: After; readonly exception: After }>;

export type ProcessRole = keyof typeof after;

interface ProcessFaults {
  readonly role: ProcessRole;
  /** Writes one log line. */
  readonly logFault: (message: string, fields: { readonly error: unknown; readonly repeated: number }) => void;
  readonly monotonicMs: () => number;
}

const repeatIntervalMs = 60_000;
const seenFaultsMax = 100;

/**
 * Registers the process-wide handlers for unhandled rejections and uncaught exceptions. Each fault is logged; the same
 * fault is logged at most once a minute, with the number of repetitions. A program whose start fails exits in any role.
 */
export function watchProcessFaults({ role, logFault, monotonicMs }: ProcessFaults): void {
  const seenFaults = new Map<string, { readonly loggedMs: number; repeated: number }>();

  function report(message: string, error: unknown): void {
    const name = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const before = seenFaults.get(name);
    const now = monotonicMs();
    if (before !== undefined && now - before.loggedMs < repeatIntervalMs) {
      before.repeated += 1;
      return;
    }
    if (seenFaults.size >= seenFaultsMax) seenFaults.clear();
    seenFaults.set(name, { loggedMs: now, repeated: 0 });
    logFault(message, { error, repeated: before?.repeated ?? 0 });
  }

  process.on("unhandledRejection", (error: unknown) => {
    report("promise rejected without a handler", error);
    if (after[role].rejection === "end") process.exit(1);
  });
  process.on("uncaughtException", (error: unknown, origin: string) => {
    report("exception not caught", error);
    // Node reports this origin if the main module failed: the program has not started, so it exits.
    if (after[role].exception === "end" || origin === "unhandledRejection") process.exit(1);
  });
}
