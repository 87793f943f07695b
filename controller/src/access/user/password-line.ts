import { HoldfastError } from "@holdfast/common/errors.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** Where a password came from. */
export interface Presenter {
  readonly source: string;
  /** True when the person has signed in from there before. */
  readonly isKnown: boolean;
}

/** The line before the slow hash: known sources go first, and no source fills it. */
export interface PasswordLine {
  /** Throws RATE_LIMITED when too many wait, of all or of this source. */
  run<T>(who: Presenter, work: () => Promise<T>): Promise<T>;
}

interface Limits {
  readonly atOnce: number;
  /** Of known sources, and as many of others. */
  readonly mayWait: number;
  readonly mayWaitOfSource: number;
}

export function createPasswordLine({ atOnce, mayWait, mayWaitOfSource }: Limits, sources: SourceGroups): PasswordLine {
  const known: (() => void)[] = [];
  const others: (() => void)[] = [];
  const waiting = new Map<string, number>();
  let running = 0;

  function refuse(): never {
    throw new HoldfastError("RATE_LIMITED", "Too many passwords are being checked.", { retryAfterS: 2 });
  }

  async function wait({ source, isKnown }: Presenter): Promise<void> {
    const line = isKnown ? known : others;
    const groups = sources(source);
    if (line.length >= mayWait) refuse();
    if (groups.some(({ name, factor }) => (waiting.get(name) ?? 0) >= mayWaitOfSource * factor)) refuse();
    for (const { name } of groups) waiting.set(name, (waiting.get(name) ?? 0) + 1);
    await new Promise<void>((resolve) => void line.push(resolve));
    for (const { name } of groups) {
      const left = (waiting.get(name) ?? 0) - 1;
      if (left > 0) waiting.set(name, left);
      else waiting.delete(name);
    }
  }

  return {
    async run(who, work) {
      if (running >= atOnce) await wait(who);
      else running += 1;
      try {
        return await work();
      } finally {
        // The place goes to the next one as it is.
        const next = known.shift() ?? others.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}
