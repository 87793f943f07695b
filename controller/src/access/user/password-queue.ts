import { HoldfastError } from "@holdfast/common/errors.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** The source of a password. */
export interface Presenter {
  readonly source: string;
  /** True when the person has signed in from there before. */
  readonly isRecent: boolean;
}

/**
 * The queue before the slow hash. Recent sources go first, unfamiliar ones never use all of its threads, and no source
 * can fill it alone.
 */
export interface PasswordQueue {
  /** Throws RATE_LIMITED when too many wait, overall or of this source. */
  run<T>(who: Presenter, work: () => Promise<T>): Promise<T>;
}

interface Limits {
  readonly concurrency: number;
  /** The part of `concurrency` for unfamiliar sources. */
  readonly unfamiliarConcurrency: number;
  /** Most waiting checks of recent sources, and as many of unfamiliar ones. */
  readonly queueMax: number;
  readonly queueMaxPerSource: number;
}

export function createPasswordQueue(limits: Limits, sources: SourceGroups): PasswordQueue {
  const { concurrency, unfamiliarConcurrency, queueMax, queueMaxPerSource } = limits;
  const recent: (() => void)[] = [];
  const unfamiliar: (() => void)[] = [];
  const waiting = new Map<string, number>();
  /** Number of running checks, and of those from unfamiliar sources among them. */
  let running = 0;
  let runningUnfamiliar = 0;

  function refuse(): never {
    throw new HoldfastError("RATE_LIMITED", "Too many passwords are being checked.", { retryAfterS: 2 });
  }

  async function wait({ source, isRecent }: Presenter): Promise<void> {
    const queue = isRecent ? recent : unfamiliar;
    const groups = sources(source);
    if (queue.length >= queueMax) refuse();
    if (groups.some(({ name, factor }) => (waiting.get(name) ?? 0) >= queueMaxPerSource * factor)) refuse();
    for (const { name } of groups) waiting.set(name, (waiting.get(name) ?? 0) + 1);
    await new Promise<void>((resolve) => {
      queue.push(resolve);
    });
    for (const { name } of groups) {
      const remaining = (waiting.get(name) ?? 0) - 1;
      if (remaining > 0) waiting.set(name, remaining);
      else waiting.delete(name);
    }
  }

  const hasCapacity = (isRecent: boolean) =>
    running < concurrency && (isRecent || runningUnfamiliar < unfamiliarConcurrency);

  function begin(isRecent: boolean): void {
    running += 1;
    if (!isRecent) runningUnfamiliar += 1;
  }

  /** Ends a check and starts the next waiting one at once, before any new caller. */
  function end(isRecent: boolean): void {
    running -= 1;
    if (!isRecent) runningUnfamiliar -= 1;
    const nextIsRecent = recent.length > 0;
    if (!hasCapacity(nextIsRecent)) return;
    const next = nextIsRecent ? recent.shift() : unfamiliar.shift();
    if (next === undefined) return;
    begin(nextIsRecent);
    next();
  }

  return {
    async run(who, work) {
      if (hasCapacity(who.isRecent)) begin(who.isRecent);
      else await wait(who);
      try {
        return await work();
      } finally {
        end(who.isRecent);
      }
    },
  };
}
