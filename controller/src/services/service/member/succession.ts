import { type ManagedServiceObject, type Succession, withoutVote } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import type { LogEnd } from "./log-position.ts";
import { type MemberWord, succeed, type SuccessionVerdict } from "./succession-verdict.ts";

/** Pure: what the service's succession needs next; undefined without one. */
export function verdictOn(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): SuccessionVerdict | undefined {
  const { succession, instanceGeneration } = service.spec;
  if (succession === undefined) return undefined;
  const wordOf = (id: string) =>
    memberWord(
      observed.nodes.find(({ node }) => node.id === id),
      instanceGeneration,
    );
  return succeed(succession, wordOf(succession.from), wordOf(succession.to), now);
}

/** Pure: what is known of the old primary of the service's succession. */
export function wordOfOld(service: ManagedServiceObject, observed: ObservedService): MemberWord {
  const { succession, instanceGeneration } = service.spec;
  const old = observed.nodes.find(({ node }) => node.id === succession?.from);
  return memberWord(old, instanceGeneration);
}

const silence: MemberWord = { answers: false, isHeld: false, engine: "unknown" };

/** What it told of settings and of stopped data is true of its disk, and so it stays when its agent falls silent. */
function memberWord(member: ObservedNode | undefined, generation: number): MemberWord {
  if (member?.instance === undefined) return silence;
  const { connected, isCurrent, instance } = member;
  const isHeld = Number(instance.generation) >= generation;
  return { answers: connected && isCurrent, isHeld, engine: engineOf(instance) };
}

function engineOf({ state, replication }: NonNullable<ObservedNode["instance"]>): MemberWord["engine"] {
  if (state === "running") return replication?.role === "primary" ? "writes" : "unknown";
  if (state !== "stopped" || replication === undefined) return "unknown";
  if (replication.stoppedAt !== "") return "ended";
  // Agents of older versions do not tell whose data they have: nothing is concluded from their silence.
  if (replication.dataRole === "") return "unknown";
  return replication.dataRole === "replica" ? "follower" : "cutOff";
}

/** Pure: where the log of the old primary ended in order; undefined as long as that is not known. */
export function yieldedAt({ spec }: ManagedServiceObject, observed: ObservedService): LogEnd | undefined {
  const old = observed.nodes.find(({ node }) => node.id === spec.succession?.from);
  const word = memberWord(old, spec.instanceGeneration);
  const told = old?.instance?.replication;
  if (!word.isHeld || word.engine !== "ended" || told === undefined) return undefined;
  return { position: told.stoppedAt, history: told.stoppedHistory };
}

/** Pure: has the new primary taken a write under its term? */
export function hasTakenOver({ spec, status }: ManagedServiceObject, observed: ObservedService): boolean {
  if (spec.succession?.step !== "promote") return false;
  const heir = observed.nodes.find(({ node }) => node.id === status.primaryNodeId);
  const { answers, isHeld, engine } = memberWord(heir, spec.instanceGeneration);
  return answers && isHeld && engine === "writes";
}

/** Pure: the service with this node as the primary of a new term. */
export function named(
  service: ManagedServiceObject,
  to: string,
  now: number,
  known: Pick<Succession, "hasPromoted"> = {},
): ManagedServiceObject {
  const { spec, status } = service;
  const succession: Succession | undefined = spec.succession && {
    ...spec.succession,
    to,
    step: "promote",
    stepSince: now,
    ...known,
  };
  // Replicas of the old primary have no vote until they follow the new one.
  const nodes = spec.nodes.map(withoutVote);
  return {
    ...service,
    spec: { ...spec, nodes, instanceGeneration: spec.instanceGeneration + 1, ...(succession && { succession }) },
    status: { ...status, primaryNodeId: to, term: status.term + 1 },
  };
}

/** Pure: the service without a primary until the one that was named says what became of it. */
export function recalled(service: ManagedServiceObject, now: number): ManagedServiceObject {
  const { spec, status } = service;
  const succession: Succession | undefined = spec.succession && { ...spec.succession, step: "recall", stepSince: now };
  return {
    ...service,
    spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1, ...(succession && { succession }) },
    status: { ...status, term: status.term + 1 },
  };
}

/** Pure: the service once its succession is over. */
export function settledSuccession(service: ManagedServiceObject): ManagedServiceObject {
  const { succession: _, ...spec } = service.spec;
  return { ...service, spec };
}
