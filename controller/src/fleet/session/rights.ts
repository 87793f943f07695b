import type { Log } from "@holdfast/common/log.ts";
import { rightMs } from "@holdfast/common/right.ts";
import type { RightRequest } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Session } from "./session.ts";

/** What clocks, pauses of a keeper and the end of an engine may take beyond it. */
export const rightMarginMs = 2_000;
/** A right is granted by no older knowledge of who is the primary. */
export const knownWithinMs = 3_000;

/** Who says whether a machine may be the primary now. */
export interface RightRules {
  /** Pure, by memory: why the machine may not be the service's primary under this term; undefined when it may. */
  refusal(machineId: string, serviceId: string, term: number): string | undefined;
  /** Resolves when the memory has this revision. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
}

/** What this controller heard of a machine's right, in milliseconds ago. */
export interface HeardRight {
  readonly askedAgoMs: number;
  /** Undefined: none was granted here. */
  readonly grantedAgoMs: number | undefined;
  /** Its agent reports that the engine has answered no client for some seconds. */
  readonly isEngineSilent: boolean;
}

/** What of it another controller is told. */
export type Silence = Pick<HeardRight, "askedAgoMs" | "isEngineSilent">;

/** What a grant hangs on, besides the rules. */
export interface GrantWord {
  readonly hasLease: boolean;
  /** How old the knowledge is that the rules are asked by. */
  readonly knownAgoMs: number;
  /** Why the machine may not be the primary, by that. */
  readonly refusal: string | undefined;
}

/** Pure: why no right is granted now; undefined when it is. */
export function refusalOf({ hasLease, knownAgoMs, refusal }: GrantWord): string | undefined {
  if (!hasLease) return "this controller has no lease";
  return knownAgoMs < knownWithinMs ? refusal : "this controller does not know enough";
}

/** Grants rights on the streams that are here. Nothing of them is stored. */
export interface Rights {
  request(session: Session, request: RightRequest): Promise<void>;
  /** A stream of the machine was opened here: what an earlier one was silent about says nothing of it. */
  opened(machineId: string): void;
  heard(machineId: string): HeardRight | undefined;
  /**
   * Refuses the machine every right under this term, or an earlier one, from now on. Answers for how many milliseconds
   * none was granted here for certain, by an earlier process either.
   */
  revoke(machineId: string, term: bigint): number;
  /** Of machines that asked within the last minute, those whose next request is late, or whose engines are silent. */
  silent(): ReadonlyMap<string, HeardRight>;
  /** How many requests were answered how since the start. */
  answered(): Iterable<readonly [answer: RightAnswered, count: number]>;
}

/** `late`: granted to a machine whose last right was at its half already, or over. */
export type RightAnswered = "granted" | "late" | "refused";

export interface RightsDeps {
  readonly rules: RightRules | undefined;
  readonly revision: () => Promise<bigint>;
  readonly hasLease: () => boolean;
  /** Counts suspend. */
  readonly bootMs: () => number;
  /** The machine's engine fell silent, or answers again. */
  readonly onChange: (machineId: string) => void;
  readonly log: Log;
}

interface Heard {
  readonly askedMs: number;
  readonly grantedMs: number | undefined;
  /** Under which it was granted. */
  readonly term: bigint;
  readonly isEngineSilent: boolean;
}

const forgottenMs = 60_000;
/** Requests come each second: one that is older is late. */
export const punctualMs = 1_500;
const mostRevoked = 10_000;

export function createRights({ rules, revision, hasLease, bootMs, onChange, log }: RightsDeps): Rights {
  const heard = new Map<string, Heard>();
  const revoked = new Map<string, bigint>();
  const begunMs = bootMs();
  const answered = new Map<RightAnswered, number>([
    ["granted", 0],
    ["late", 0],
    ["refused", 0],
  ]);
  /** The memory had all that was in the store then. */
  let knownMs = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;

  async function look(to: RightRules): Promise<void> {
    const askedMs = bootMs();
    await to.reached(await revision(), knownWithinMs);
    knownMs = askedMs;
  }

  /** However many ask, the store is asked once a second. */
  async function know(to: RightRules): Promise<void> {
    if (bootMs() - knownMs < knownWithinMs / 3) return;
    looking ??= look(to).finally(() => {
      looking = undefined;
    });
    await looking;
  }

  function note(machineId: string, change: Partial<Heard>): void {
    const now = bootMs();
    const before = heard.get(machineId);
    const after = { askedMs: now, grantedMs: undefined, term: 0n, isEngineSilent: false, ...before, ...change };
    // Kept in the order in which machines were heard: the loop below stops at the first recent one.
    heard.delete(machineId);
    heard.set(machineId, after);
    if (after.isEngineSilent !== (before?.isEngineSilent ?? false)) onChange(machineId);
    for (const [id, { askedMs }] of heard) {
      if (now - askedMs <= forgottenMs) break;
      heard.delete(id);
    }
  }

  function count(answer: RightAnswered): void {
    answered.set(answer, (answered.get(answer) ?? 0) + 1);
  }

  /** One of another term was not to be renewed. */
  function isLate(machineId: string, term: bigint): boolean {
    const before = heard.get(machineId);
    if (before?.grantedMs === undefined || before.term !== term) return false;
    return bootMs() - before.grantedMs > rightMs / 2;
  }

  function heardOf({ askedMs, grantedMs, isEngineSilent }: Heard): HeardRight {
    const now = bootMs();
    const grantedAgoMs = grantedMs === undefined ? undefined : now - grantedMs;
    return { askedAgoMs: now - askedMs, grantedAgoMs, isEngineSilent };
  }

  return {
    async request(session, request) {
      const { machineId } = session;
      note(machineId, { askedMs: bootMs(), isEngineSilent: request.engineSilent });
      if (rules === undefined) return;
      await know(rules).catch((error: unknown) => log.debug("rights not known", { error: String(error) }));
      // From here to the answer nothing is waited for.
      const isRevoked = request.term <= (revoked.get(machineId) ?? -1n);
      const refusal = isRevoked ? "it is revoked" : rules.refusal(machineId, request.serviceId, Number(request.term));
      const reason = refusalOf({ hasLease: hasLease(), knownAgoMs: bootMs() - knownMs, refusal });
      count(reason !== undefined ? "refused" : isLate(machineId, request.term) ? "late" : "granted");
      if (reason === undefined) note(machineId, { grantedMs: bootMs(), term: request.term });
      const granted = reason === undefined;
      session.send({ case: "rightAnswer", value: { number: request.number, granted, reason: reason ?? "" } });
    },
    opened(machineId) {
      if (heard.has(machineId)) note(machineId, { askedMs: bootMs(), isEngineSilent: false });
    },
    heard(machineId) {
      const known = heard.get(machineId);
      return known && heardOf(known);
    },
    silent() {
      const all = [...heard].map(([machineId, known]) => [machineId, heardOf(known)] as const);
      return new Map(
        all.filter(
          ([, { askedAgoMs, isEngineSilent }]) =>
            askedAgoMs < forgottenMs && (isEngineSilent || askedAgoMs > punctualMs),
        ),
      );
    },
    revoke(machineId, term) {
      const before = revoked.get(machineId) ?? -1n;
      revoked.delete(machineId);
      revoked.set(machineId, term > before ? term : before);
      // Of those that go, what is known of the store says the same by now.
      if (revoked.size > mostRevoked) for (const [oldest] of [...revoked].slice(0, 100)) revoked.delete(oldest);
      const now = bootMs();
      const { grantedMs } = heard.get(machineId) ?? {};
      // Of what is forgotten the last was asked for long ago.
      return now - (grantedMs ?? Math.max(begunMs, now - forgottenMs));
    },
    answered: () => answered,
  };
}
