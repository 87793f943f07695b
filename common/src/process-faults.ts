type After = "serve" | "end";

/** What becomes of a process after a fault that no code dealt with. */
const after = {
  /** Its supervisor starts it again. An exception may have left state half changed, which no restart has. */
  server: { rejection: "serve", exception: "end" },
  /** Its own end would take down what it supervises. */
  supervisor: { rejection: "serve", exception: "serve" },
  /** It serves nobody, and a result with a part that failed unseen must not pass for a whole one. */
  job: { rejection: "end", exception: "end" },
} as const satisfies Record<string, { readonly rejection: After; readonly exception: After }>;

export type ProcessRole = keyof typeof after;

interface ProcessFaults {
  readonly role: ProcessRole;
  /** Writes one line. */
  readonly note: (message: string, fields: { readonly error: unknown; readonly repeated: number }) => void;
  readonly monotonicMs: () => number;
}

const quietMs = 60_000;
const knownMax = 100;

/**
 * Registers the last handlers of a process: for promises that reject without a handler, and for exceptions that no code
 * caught. Each is a line in the log, the same fault one line a minute with the number of times that it came meanwhile. A
 * program whose start fails ends in any role.
 */
export function watchProcessFaults({ role, note, monotonicMs }: ProcessFaults): void {
  const known = new Map<string, { readonly notedMs: number; repeated: number }>();

  function report(message: string, error: unknown): void {
    const name = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const before = known.get(name);
    const now = monotonicMs();
    if (before !== undefined && now - before.notedMs < quietMs) {
      before.repeated += 1;
      return;
    }
    if (known.size >= knownMax) known.clear();
    known.set(name, { notedMs: now, repeated: 0 });
    note(message, { error, repeated: before?.repeated ?? 0 });
  }

  process.on("unhandledRejection", (error: unknown) => {
    report("promise rejected without a handler", error);
    if (after[role].rejection === "end") process.exit(1);
  });
  process.on("uncaughtException", (error: unknown, origin: string) => {
    report("exception not caught", error);
    // Node gives this origin to a main module that failed: nothing is there yet that could go on.
    if (after[role].exception === "end" || origin === "unhandledRejection") process.exit(1);
  });
}
