import type { Clock } from "@holdfast/common/clock.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject, type Succession } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import type { Pulse } from "./pulse.ts";
import { askReplication } from "./ask-replication.ts";
import type { FenceOrders } from "./fence-orders.ts";
import { type Candidate, fenceVerdict, isToBeFenced, type RightWord } from "./fence-verdict.ts";
import { isBeyond, positionOf } from "./log-position.ts";
import { standbysOf, vouchersOf } from "./members.ts";
import { modeOf, syncStandbysOf } from "./sync-standbys.ts";
import { successorsOf } from "./suspicion.ts";
import { named, recalled, verdictOn, wordOfOld, yieldedAt } from "./succession.ts";
import type { SuccessionVerdict } from "./succession-verdict.ts";

export interface HandOverDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<unknown>, "reached">;
  readonly fleet: Pick<Fleet, "run" | "revokeRight">;
  readonly pulse: Pick<Pulse, "heard" | "knownForMs" | "forget">;
  readonly fences: FenceOrders;
  readonly machines: Pick<Collection<MachineObject>, "get">;
  readonly clock: Clock;
}

/**
 * Does what the succession needs next. The new primary is named once it has replayed the last record of the old one's log; each
 * naming comes under a new term, since somebody may have been told of what was before.
 */
export async function handOver(
  service: Stored<ManagedServiceObject>,
  observed: ObservedService,
  deps: HandOverDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { succession } = object.spec;
  const now = deps.clock.now();
  const verdict = verdictOn(object, observed, now);
  if (succession === undefined || verdict === undefined || verdict === "wait") return;
  // That is written with what there is to announce of it.
  if (verdict === "settle") return;
  if (verdict === "fence") return nameNext(service, succession, observed, deps, signal);
  if (verdict === "compare" && !(await hasEverything(object, succession, observed, deps, signal))) return;
  const unit = deps.begin();
  unit.update(managedServiceKind, service, nextOf(object, succession, verdict, now));
  await deps.services.reached(await unit.commit(signal), 1_000);
}

function nextOf(
  service: ManagedServiceObject,
  { from, to }: Succession,
  verdict: Exclude<SuccessionVerdict, "wait" | "settle" | "fence">,
  now: number,
): ManagedServiceObject {
  if (verdict === "recall") return recalled(service, now);
  if (verdict === "goBack") return named(service, from, now);
  return named(service, to, now, verdict === "goOn" ? { hasPromoted: true } : {});
}

/** The replica with the most log takes the place of a silent primary, once that is certain to take no writes. */
async function nameNext(
  service: Stored<ManagedServiceObject>,
  { from, forced }: Succession,
  observed: ObservedService,
  deps: HandOverDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { pulse, fleet, clock } = deps;
  const fact = `fence ${object.metadata.id}/${object.spec.instanceGeneration}`;
  const revokedForMs = pulse.knownForMs(fact);
  // Asked after the revocation was written: who comes later knows of it.
  const ungrantedForMs = await fleet.revokeRight(from, object.status.term, signal).catch(() => undefined);
  const needed = neededOf(object, observed);
  const neverLapses = deps.machines.get(from)?.object.spec.kind === "virtual_machine";
  const right: RightWord = { revokedForMs, ungrantedForMs, neverLapses };
  /** Who is named now, by how far each of them is now. */
  const look = async (isProven: boolean) => {
    const candidates = await askCandidates(object, observed, needed ?? [], deps, signal);
    const verdictBy = (word: RightWord) => fenceVerdict(wordOfOld(object, observed), word, candidates, needed, forced);
    return { verdict: verdictBy({ ...right, isProven }), ifProven: verdictBy({ ...right, isProven: true }) };
  };
  let { verdict, ifProven } = await look(false);
  // A machine that may come back as the primary is left alone while there is nobody to take its place.
  if (
    verdict.kind !== "name" &&
    ifProven.kind === "name" &&
    isToBeFenced(right, pulse.heard(from)?.askedAgoMs ?? 0) &&
    (await deps.fences.isEnded(fact, from))
  )
    ({ verdict } = await look(true));
  if (verdict.kind === "wait") return;
  const to = verdict.kind === "goBack" ? from : verdict.nodeId;
  const unit = deps.begin();
  unit.update(managedServiceKind, service, named(object, to, clock.now()));
  await deps.services.reached(await unit.commit(signal), 1_000);
  pulse.forget(fact);
}

/** Pure: the replicas of which one has each commit that was acknowledged; undefined where commits wait for nobody. */
function neededOf(service: ManagedServiceObject, observed: ObservedService): readonly string[] | undefined {
  if (modeOf(service.spec) === "async") return undefined;
  const old = observed.nodes.find(({ node }) => node.id === service.spec.succession?.from);
  // The fence came with settings of its own; one that lacks those of before may have waited for others.
  const isCurrent = Number(old?.instance?.generation ?? 0n) >= service.spec.instanceGeneration - 1;
  return (isCurrent ? syncStandbysOf(service) : standbysOf(service)).map(({ id }) => id);
}

/** Those that may be named, and those that have to be asked how far they are. */
async function askCandidates(
  service: ManagedServiceObject,
  observed: ObservedService,
  needed: readonly string[],
  deps: HandOverDeps,
  signal: AbortSignal,
): Promise<readonly Candidate[]> {
  const { forced } = service.spec.succession ?? {};
  const counted = successorsOf(service, observed).map(({ id }) => id);
  const vouchers = vouchersOf(service).map(({ id }) => id);
  const asked = [...new Set([...vouchers, ...needed, ...(forced === undefined ? [] : [forced])])];
  const answers = await Promise.all(asked.map((id) => askCandidate(service, id, deps, signal)));
  return answers.flatMap((one) => {
    if (one === undefined) return [];
    return [{ ...one, isOther: !vouchers.includes(one.nodeId), isUncounted: !counted.includes(one.nodeId) }];
  });
}

async function askCandidate(
  service: ManagedServiceObject,
  nodeId: string,
  deps: HandOverDeps,
  signal: AbortSignal,
): Promise<Candidate | undefined> {
  const told = await askReplication(service, nodeId, deps, signal, { replacesPrimary: true });
  if (told?.role !== "replica") return undefined;
  const { timeline, history, streaming } = told;
  return { nodeId, timeline, history, streaming, position: positionOf(told.position), quietMs: Number(told.quietMs) };
}

async function hasEverything(
  service: ManagedServiceObject,
  { to }: Succession,
  observed: ObservedService,
  deps: HandOverDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const end = yieldedAt(service, observed);
  const has =
    end === undefined ? undefined : await askReplication(service, to, deps, signal, { replacesPrimary: true });
  return end !== undefined && has?.role === "replica" && isBeyond(has, end);
}
