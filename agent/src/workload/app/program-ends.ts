import type { EngineCheck, LogLevel } from "../../engines/engine-driver.ts";
import type { ComponentStatus } from "../../os/keeper-client.ts";
import type { MemoryWatch } from "../engine/memory-watch.ts";
import type { SlotName } from "./slots.ts";

/** Ends of the app's programs that nobody requested: their reasons, and the health check of the last minutes. */
export interface ProgramEnds {
  /** Marks the start of a run: a later kill for want of memory may be the end of it. */
  started(slot: SlotName): Promise<void>;
  /** The reason for users of a run that ended before it was ready. */
  beforeReady(slot: SlotName, exit: ComponentStatus["exit"]): Promise<string>;
  /** Records the end of a program that is started again, and resolves with the reason for users. */
  note(slot: SlotName, exit: ComponentStatus["exit"]): Promise<string>;
  /** Health check of the program. An end is reported for ten minutes after it happened. */
  check(): EngineCheck;
}

export interface ProgramEndsDeps {
  readonly memory: Pick<MemoryWatch, "mark" | "killedSince">;
  /** Writes a line of the platform to the app's log. */
  readonly print: (level: LogLevel, message: string) => void;
  readonly now: () => number;
}

const reportPeriodMs = 10 * 60_000;
/** A runtime reports the end by a signal as an exit code above this number. */
const signalBase = 128;
/** Signals that end programs, by their numbers. */
const signals: ReadonlyMap<number, string> = new Map([
  [1, "SIGHUP"],
  [2, "SIGINT"],
  [3, "SIGQUIT"],
  [4, "SIGILL"],
  [6, "SIGABRT"],
  [7, "SIGBUS"],
  [8, "SIGFPE"],
  [9, "SIGKILL"],
  [11, "SIGSEGV"],
  [13, "SIGPIPE"],
  [15, "SIGTERM"],
  [31, "SIGSYS"],
]);
const killed = "SIGKILL";

export function createProgramEnds({ memory, print, now }: ProgramEndsDeps): ProgramEnds {
  const atAgentStart = memory.mark();
  const marks = new Map<SlotName, number>();
  let last: { readonly at: number; readonly times: number; readonly how: string } | undefined;

  const isOutOfMemory = async (slot: SlotName, exit: ComponentStatus["exit"]) =>
    signalOf(exit) === killed && (await memory.killedSince(marks.get(slot) ?? (await atAgentStart)));

  return {
    async started(slot) {
      marks.set(slot, await memory.mark());
    },
    async beforeReady(slot, exit) {
      const isKilled = await isOutOfMemory(slot, exit);
      return isKilled
        ? "The program was killed before it was ready: out of memory."
        : `The program ended before it was ready${outcome(exit)}.`;
    },
    async note(slot, exit) {
      const isKilled = await isOutOfMemory(slot, exit);
      const how = isKilled ? "was killed (out of memory)" : `ended${outcome(exit).replace(",", "")}`;
      const isRecent = last !== undefined && now() - last.at < reportPeriodMs;
      last = { at: now(), times: isRecent ? (last?.times ?? 0) + 1 : 1, how };
      const times = last.times === 1 ? "" : ` (${last.times} times in the last minutes)`;
      const reason = `The program ${how} and is started again${times}.`;
      print("error", reason);
      return reason;
    },
    check() {
      if (last === undefined || now() - last.at >= reportPeriodMs)
        return { name: "program", status: "healthy", reason: "" };
      const { at, times, how } = last;
      const restarts = times === 1 ? "once" : `${times} times`;
      const reason = `The program ${how} at ${new Date(at).toISOString()}; it was started again ${restarts}.`;
      return { name: "program", status: "degraded", reason };
    },
  };
}

/** The exit of a program as the end of a sentence, such as `, with the exit code 137 (SIGKILL)`. */
function outcome(exit: ComponentStatus["exit"]): string {
  const signal = signalOf(exit);
  if (exit?.code == null) return signal === undefined ? "" : `, by ${signal}`;
  return `, with the exit code ${exit.code}${signal === undefined ? "" : ` (${signal})`}`;
}

function signalOf(exit: ComponentStatus["exit"]): string | undefined {
  if (exit?.code == null) return exit?.signal ?? undefined;
  return exit.code > signalBase ? signals.get(exit.code - signalBase) : undefined;
}
