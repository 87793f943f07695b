import { lookUp } from "@holdfast/common/look-up.ts";
import { isDeepStrictEqual } from "node:util";
import type { Collection } from "#kernel/store/collection.ts";
import type { Watch } from "#kernel/store/store.ts";
import type { ResourceObservation, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { CompositionObject, CompositionSealer, Member } from "./composition.ts";
import type { CompositionState } from "./composition-lifecycle.ts";
import { notCreated, type Observe, type Observed } from "./composition-step.ts";

/** Observes the resources of compositions through their kinds. */
export interface Observer {
  observe(composition: CompositionObject, signal: AbortSignal): Promise<Observe>;
  /** A string that changes whenever an observation may have changed; cheap to compute. */
  inputs(composition: CompositionObject | undefined): string;
  /** Calls `onChange` with ids of compositions whose resources may have changed. */
  subscribe(onChange: (compositionId: string) => void): Watch;
}

export function createObserver(
  compositions: Collection<CompositionObject>,
  kinds: ResourceKinds,
  seal: CompositionSealer,
): Observer {
  /** The observation of memory, unless the composition has just changed the resource, or memory may be behind it. */
  async function observationOf({ kind, id, change }: Member, state: CompositionState, signal: AbortSignal) {
    const isRequested = change?.step === "begun" || change?.step === "undoing" || state === "Wiring";
    const observation = await kinds.of(kind).observe(id, signal, { isCurrent: isRequested });
    if (isRequested || state !== "Running" || observation.phase === "running") return observation;
    return kinds.of(kind).observe(id, signal, { isCurrent: true });
  }

  async function observeMember(
    compositionId: string,
    member: Member,
    state: CompositionState,
    signal: AbortSignal,
  ): Promise<Observed> {
    if (member.step === "planned") return notCreated;
    const { change } = member;
    const observation = await observationOf(member, state, signal);
    if (change?.step !== "begun")
      return { ...observation, isChangeApplied: true, ...followedOf(compositionId, member, observation) };
    const target = seal.spec(compositionId, change.sealedTarget);
    return { ...observation, isChangeApplied: hasAll(observation, target, change.keys) };
  }

  const specs = new WeakMap<Member, ResourceSpec>();

  /** The direct change of a resource. An operation in progress may be rolled back, so only its final state counts. */
  function followedOf(
    compositionId: string,
    member: Member,
    { phase, actual }: ResourceObservation,
  ): Pick<Observed, "followed"> {
    const { kind, step, change, sealedSpec } = member;
    const { followed, monthlyCost } = kinds.of(kind);
    if (followed === undefined || step !== "ready" || change !== undefined || phase !== "running") return {};
    // Members of the collection stay the same objects until they change.
    const before = specs.get(member) ?? seal.spec(compositionId, sealedSpec);
    specs.set(member, before);
    const after = followed(before, actual);
    if (after === undefined) return {};
    const centsOf = (spec: ResourceSpec) => monthlyCost(spec).reduce((sum, { cents }) => sum + cents, 0);
    const addedCents = centsOf(after) - centsOf(before);
    return { followed: { sealedSpec: seal.seal(compositionId, after), addedCents } };
  }

  return {
    async observe({ metadata, status }, signal) {
      const observations = await Promise.all(
        status.members.map(
          async (member) => [member.id, await observeMember(metadata.id, member, status.state, signal)] as const,
        ),
      );
      const observed = new Map(observations);
      return (member) => observed.get(member.id) ?? notCreated;
    },
    inputs: (composition) =>
      composition?.status.members.map(({ kind, id }) => kinds.of(kind).version(id)).join(" ") ?? "",
    subscribe(onChange) {
      const parents = new Map<string, string>();
      const register = (id: string) => {
        for (const member of compositions.get(id)?.object.status.members ?? []) parents.set(member.id, id);
      };
      const forget = (before: CompositionObject | undefined) => {
        for (const member of before?.status.members ?? []) parents.delete(member.id);
      };
      for (const id of compositions.ids()) register(id);
      const wake = (resourceId: string) => {
        const parent = parents.get(resourceId);
        if (parent !== undefined) onChange(parent);
      };
      const watches = [
        compositions.subscribe((id, before) => {
          forget(before);
          register(id);
        }),
        ...kinds.all.map((kind) => kind.subscribe(wake)),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}

/** True if the resource has the target's values for all of these keys that it reports. */
function hasAll(
  { actual }: ResourceObservation,
  target: Readonly<Record<string, unknown>>,
  keys: readonly string[],
): boolean {
  return keys.every((key) => !Object.hasOwn(actual, key) || isDeepStrictEqual(actual[key], lookUp(target, key)));
}
