import { noop, type IPolicy } from "cockatiel";
import { GRPCDeadlineExceededError, GRPCUnavailableError } from "etcd3";

/**
 * Which members of etcd a client calls. It picks one at random, and without a choice every third call to a cluster of
 * three would wait for a member that is down. A member that does not respond is skipped for `skipMs` while another one
 * is better: one that responds, or whose failure is older. Then a single call tries it, and the others continue to skip
 * it until that call succeeds.
 */
export interface MemberChoice {
  /** Policy of a member's calls: throws MemberSkipped instead of a call, and the client takes the next member. */
  policyOf(host: string): IPolicy;
  /** The member of this stream does not respond. A stream has no deadline, so its user reports it. */
  skip(stream: object): void;
}

/** All members were skipped: another call that failed between two of the choices changed which of them are better. */
export class MemberSkipped extends Error {
  override readonly name = "MemberSkipped";
}

const skipMs = 5_000;
const neverAborted = new AbortController().signal;

interface Member {
  /** `-Infinity` while it responds. */
  skippedUntil: number;
}

export function createMemberChoice(nowMs: () => number): MemberChoice {
  const members: Member[] = [];
  const memberOf = new WeakMap<object, Member>();

  function skip(member: Member): void {
    member.skippedUntil = nowMs() + skipMs;
  }

  function admit(member: Member): void {
    const { skippedUntil } = member;
    if (skippedUntil === Number.NEGATIVE_INFINITY) return;
    const isBest = members.every((other) => other.skippedUntil >= skippedUntil);
    if (nowMs() < skippedUntil && !isBest) throw new MemberSkipped();
    // The next call takes another member, if this one does not respond.
    skip(member);
  }

  return {
    policyOf() {
      const member: Member = { skippedUntil: Number.NEGATIVE_INFINITY };
      members.push(member);
      return {
        _altReturn: noop._altReturn,
        onSuccess: noop.onSuccess,
        onFailure: noop.onFailure,
        async execute(run, signal = neverAborted) {
          admit(member);
          try {
            const result = await run({ signal });
            if (isStream(result)) memberOf.set(result, member);
            else member.skippedUntil = Number.NEGATIVE_INFINITY;
            return result;
          } catch (error) {
            if (isSilence(error)) skip(member);
            throw error;
          }
        },
      };
    },
    skip(stream) {
      const member = memberOf.get(stream);
      if (member !== undefined) skip(member);
    },
  };
}

/** True if the member did not respond. One that reports that etcd has no leader, such as in an election, responded. */
function isSilence(error: unknown): boolean {
  if (error instanceof GRPCDeadlineExceededError) return true;
  return error instanceof GRPCUnavailableError && !error.message.includes("etcdserver:");
}

/** True for a stream, which is open before its member has responded. */
function isStream(result: unknown): result is object {
  return typeof result === "object" && result !== null && "cancel" in result;
}
