import { HoldfastError } from "@holdfast/common/errors.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** Where a password came from. */
export interface Presenter {
  readonly source: string;
  /** True when the person has signed in from there before. */
  readonly isKnown: boolean;
}

/** The line before the slow hash: known sources go first, others never have all of its places, and no source fills it. */
export interface PasswordLine {
  /** Throws RATE_LIMITED when too many wait, of all or of this source. */
  run<T>(who: Presenter, work: () => Promise<T>): Promise<T>;
}

interface Limits {
  readonly atOnce: number;
  /** Of these, the places for sources that are not known. */
  readonly othersAtOnce: number;
  /** Of known sources, and as many of others. */
  readonly mayWait: number;
  readonly mayWaitOfSource: number;
}

export function createPasswordLine(limits: Limits, sources: SourceGroups): PasswordLine {
  const { atOnce, othersAtOnce, mayWait, mayWaitOfSource } = limits;
  const known: (() => void)[] = [];
  const others: (() => void)[] = [];
  const waiting = new Map<string, number>();
  /** All that run, and those of other sources among them. */
  let running = 0;
  let ofOthers = 0;

  function refuse(): never {
    throw new HoldfastError("RATE_LIMITED", "Too many passwords are being checked.", { retryAfterS: 2 });
  }

  async function wait({ source, isKnown }: Presenter): Promise<void> {
    const line = isKnown ? known : others;
    const groups = sources(source);
    if (line.length >= mayWait) refuse();
    if (groups.some(({ name, factor }) => (waiting.get(name) ?? 0) >= mayWaitOfSource * factor)) refuse();
    for (const { name } of groups) waiting.set(name, (waiting.get(name) ?? 0) + 1);
    await new Promise<void>((resolve) => {
      line.push(resolve);
    });
    for (const { name } of groups) {
      const left = (waiting.get(name) ?? 0) - 1;
      if (left > 0) waiting.set(name, left);
      else waiting.delete(name);
    }
  }

  const hasPlace = (isKnown: boolean) => running < atOnce && (isKnown || ofOthers < othersAtOnce);

  function begin(isKnown: boolean): void {
    running += 1;
    if (!isKnown) ofOthers += 1;
  }

  /** Gives the place to the next one, which begins before anybody else comes. */
  function end(isKnown: boolean): void {
    running -= 1;
    if (!isKnown) ofOthers -= 1;
    const nextIsKnown = known.length > 0;
    if (!hasPlace(nextIsKnown)) return;
    const next = nextIsKnown ? known.shift() : others.shift();
    if (next === undefined) return;
    begin(nextIsKnown);
    next();
  }

  return {
    async run(who, work) {
      if (hasPlace(who.isKnown)) begin(who.isKnown);
      else await wait(who);
      try {
        return await work();
      } finally {
        end(who.isKnown);
      }
    },
  };
}
