import { mkdir, chmod } from "node:fs/promises";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import type { EngineDeps } from "@holdfast/agent/engines/engine-deps.ts";
import type { Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { otherMembers } from "@holdfast/agent/engines/members.ts";
import type { PeersFacet } from "@holdfast/agent/engines/peers-facet.ts";
import { callEtcd, decoded, encoded, EtcdRefusal, type EtcdTarget, prefixRange, type RangeReply } from "./api.ts";
import {
  addressedMembers,
  dataDirectory,
  initialFile,
  type Initial,
  nameOf,
  numberOfName,
  ownDirectory,
  ownNumber,
  ownTarget,
  peerUrl,
  targetOf,
} from "./layout.ts";

interface EngineMember {
  readonly ID: string;
  /** Name of the member; empty until its first start. */
  readonly name?: string;
  readonly peerURLs: readonly string[];
  readonly isLearner?: boolean;
}

interface Status {
  readonly header: { readonly member_id: string };
  /** Id of the leader; `0` without one. */
  readonly leader?: string;
  readonly raftIndex?: string;
  readonly raftAppliedIndex?: string;
  readonly dbSize?: string;
}

/** Maximum number of log entries that a member in sync may lack. */
const maxLag = 1_000;
const answersWithinMs = 1_000;
const drainPrefix = "drains/";

export function createPeers({ runAsEngine }: Pick<EngineDeps, "runAsEngine">): PeersFacet {
  async function begin(instance: Instance, initial: Initial, signal: AbortSignal): Promise<void> {
    await makeDirectory(instance);
    await runAsEngine(["/bin/rm", "-rf", dataDirectory(instance)], { signal });
    await writeDurably(initialFile(instance), JSON.stringify(initial), 0o640);
  }

  return {
    async formCluster(instance, signal) {
      const cluster = addressedMembers(instance).map(({ number, address }) => `${nameOf(number)}=${peerUrl(address)}`);
      await begin(instance, { state: "new", cluster: cluster.join() }, signal);
    },
    async join(instance, signal) {
      const url = peerUrl(instance.spec.address);
      const members = await throughAny(instance, signal, async (target) => {
        // An earlier attempt, or a member whose data were lost.
        const before = (await membersAt(target, signal)).find(({ peerURLs }) => peerURLs.includes(url));
        if (before !== undefined) await callEtcd(target, "cluster/member/remove", { ID: before.ID }, signal);
        const added = { peerURLs: [url], isLearner: true };
        return callEtcd<{ members: EngineMember[] }>(target, "cluster/member/add", added, signal);
      });
      const cluster = members.members.flatMap(({ name, peerURLs }) =>
        peerURLs.map((each) => `${each === url ? nameOf(ownNumber(instance)) : name}=${each}`),
      );
      await begin(instance, { state: "existing", cluster: cluster.join() }, signal);
    },
    async admit(instance, signal) {
      const ownName = nameOf(ownNumber(instance));
      await throughAny(instance, signal, async (target) => {
        const found = (await membersAt(target, signal)).find(({ name }) => name === ownName);
        if (found?.isLearner === true) await callEtcd(target, "cluster/member/promote", { ID: found.ID }, signal);
      });
    },
    async leave(instance, number, signal) {
      const target = ownTarget(instance);
      const { kvs = [] } = await callEtcd<RangeReply>(
        target,
        "kv/range",
        { key: encoded(drainPrefix + number) },
        signal,
      );
      const now = Date.now();
      if (kvs.length === 0) {
        const put = { key: encoded(drainPrefix + number), value: encoded(String(now)) };
        await callEtcd(target, "kv/put", put, signal);
      }
      const endsAt = Number(decoded(kvs[0]?.value ?? encoded(String(now)))) + drainMs(instance);
      if (endsAt > now) return;
      const members = await membersAt(target, signal);
      const leaving = members.find((member) => numberIn(instance, member) === number);
      if (number === ownNumber(instance)) {
        const [next] = (await statesOf(instance, members, signal)).filter(
          (each) => each.votes && each.number !== number,
        );
        await callEtcd(target, "maintenance/transfer-leadership", { targetID: next?.id ?? "0" }, signal);
      } else if (leaving !== undefined) await callEtcd(target, "cluster/member/remove", { ID: leaving.ID }, signal);
    },
    report,
  };
}

/** Directory in which the agent and the engine, of the same group, write. */
export async function makeDirectory(instance: Instance): Promise<void> {
  await mkdir(ownDirectory(instance), { recursive: true });
  await chmod(ownDirectory(instance), 0o770);
}

const report: PeersFacet["report"] = async (instance, signal) => {
  const ownStatus = await statusAt(ownTarget(instance), signal);
  if (ownStatus === undefined) throw new Error("the engine does not answer");
  const isLeader = ownStatus.leader === ownStatus.header.member_id;
  // A member that does not vote has no list of members.
  const members = await membersAt(ownTarget(instance), signal, false).catch(() =>
    throughAny(instance, signal, (target) => membersAt(target, signal, false)),
  );
  const states = await statesOf(instance, members, signal);
  const voters = states.filter(({ votes }) => votes);
  const agreeing = voters.filter(({ status }) => status?.leader !== undefined && status.leader === ownStatus.leader);
  const newest = Number(
    states.find(({ id }) => id === ownStatus.leader)?.status?.raftIndex ?? Number.POSITIVE_INFINITY,
  );
  const isInSync = (status: Status | undefined) => newest - Number(status?.raftAppliedIndex ?? 0) <= maxLag;
  const hasMajority = 2 * agreeing.length > voters.length;
  const complete = agreeing.filter(({ status }) => isInSync(status));
  const isSpare = (number: number) =>
    voters.length === 1 || 2 * complete.filter((each) => each.number !== number).length > voters.length;
  const numbers = voters.map(({ number }) => number);
  return {
    isLeader,
    quorum: { voters: voters.length, reachable: agreeing.length, hasMajority },
    inSync: hasMajority && isInSync(ownStatus),
    members: numbers,
    joining: states.filter(({ votes }) => !votes).map(({ number }) => number),
    safeToRestart: hasMajority ? numbers.filter(isSpare) : [],
    leaving: isLeader && hasMajority ? await drainsOf(instance, ownStatus, numbers, signal) : [],
  };
};

interface MemberState {
  readonly id: string;
  readonly number: number;
  readonly votes: boolean;
  readonly status: Status | undefined;
}

function statesOf(instance: Instance, members: readonly EngineMember[], signal: AbortSignal): Promise<MemberState[]> {
  return Promise.all(
    members.map(async (member) => {
      const number = numberIn(instance, member);
      const listed = addressedMembers(instance).find((each) => each.number === number);
      const status = listed && (await statusAt(targetOf(instance, listed), signal));
      return { id: member.ID, number, votes: member.isLearner !== true, status };
    }),
  );
}

async function drainsOf(instance: Instance, status: Status, members: readonly number[], signal: AbortSignal) {
  const { kvs = [] } = await callEtcd<RangeReply>(ownTarget(instance), "kv/range", prefixRange(drainPrefix), signal);
  return kvs.flatMap(({ key, value = "" }) => {
    const number = Number(decoded(key).slice(drainPrefix.length));
    const passedMs = Date.now() - Number(decoded(value));
    const remaining = 1 - Math.min(1, passedMs / Math.max(1, drainMs(instance)));
    return members.includes(number) ? [{ number, remainingBytes: remaining * Number(status.dbSize ?? 0) }] : [];
  });
}

function drainMs({ spec }: Instance): number {
  return Number(spec.parameters["drain-seconds"] ?? 0) * 1_000;
}

/** Number of a member by its name, or by its address while it has no name. */
function numberIn(instance: Instance, { name, peerURLs }: EngineMember): number {
  const byAddress = addressedMembers(instance).find(({ address }) => peerURLs.includes(peerUrl(address)));
  return numberOfName(name) ?? byAddress?.number ?? 0;
}

async function membersAt(target: EtcdTarget, signal: AbortSignal, linearizable = true): Promise<EngineMember[]> {
  const { members } = await callEtcd<{ members: EngineMember[] }>(
    target,
    "cluster/member/list",
    { linearizable },
    signal,
  );
  return members;
}

/** Status of a member; undefined without a response. */
async function statusAt(target: EtcdTarget, signal: AbortSignal): Promise<Status | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(answersWithinMs)]);
  return callEtcd<Status>(target, "maintenance/status", {}, limit).catch(() => undefined);
}

/** Result of the first other member that performs `act`; throws the reason of a refusal if there was one. */
async function throughAny<T>(
  instance: Instance,
  signal: AbortSignal,
  act: (target: EtcdTarget) => Promise<T>,
): Promise<T> {
  let reason: unknown = new Error("no other member has an address");
  for (const member of otherMembers(instance).filter(({ address }) => address !== "")) {
    try {
      return await act(targetOf(instance, member));
    } catch (error) {
      signal.throwIfAborted();
      // The reason of a refusal is preferred to the error of a lost member.
      if (error instanceof EtcdRefusal || !(reason instanceof EtcdRefusal)) reason = error;
    }
  }
  throw reason;
}
