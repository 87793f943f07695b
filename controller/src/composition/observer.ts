import { lookUp } from "@holdfast/common/look-up.ts";
import { isDeepStrictEqual } from "node:util";
import type { Collection } from "#kernel/store/collection.ts";
import type { Watch } from "#kernel/store/store.ts";
import type { Observation } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { CompositionObject, CompositionSeal, Member } from "./composition.ts";
import { notMade, type Observe, type Observed } from "./composition-step.ts";

/** Looks at the resources of compositions. */
export interface Observer {
  observe(composition: CompositionObject, signal: AbortSignal): Promise<Observe>;
  /** Another text whenever an observation may differ; cheap. */
  inputs(composition: CompositionObject | undefined): string;
  /** Calls back with ids of compositions whose resources may have changed. */
  subscribe(onChange: (compositionId: string) => void): Watch;
}

export function createObserver(
  compositions: Collection<CompositionObject>,
  kinds: ResourceKinds,
  seal: CompositionSeal,
): Observer {
  async function observeMember(compositionId: string, member: Member, signal: AbortSignal): Promise<Observed> {
    if (member.step === "planned") return notMade;
    const { change } = member;
    const isAsked = change?.step === "begun" || change?.step === "undoing";
    const observation = await kinds.of(member.kind).observe(member.id, signal, { isFresh: isAsked });
    if (change?.step !== "begun") return { ...observation, hasTaken: true };
    const target = seal.spec(compositionId, change.sealedTarget);
    return { ...observation, hasTaken: hasAll(observation, target, change.keys) };
  }

  return {
    async observe({ metadata, status }, signal) {
      const seen = await Promise.all(
        status.members.map(async (member) => [member.id, await observeMember(metadata.id, member, signal)] as const),
      );
      const observed = new Map(seen);
      return (member) => observed.get(member.id) ?? notMade;
    },
    inputs: (composition) =>
      composition?.status.members.map(({ kind, id }) => kinds.of(kind).version(id)).join(" ") ?? "",
    subscribe(onChange) {
      const parents = new Map<string, string>();
      const learn = (id: string) => {
        for (const member of compositions.get(id)?.object.status.members ?? []) parents.set(member.id, id);
      };
      const forget = (before: CompositionObject | undefined) => {
        for (const member of before?.status.members ?? []) parents.delete(member.id);
      };
      for (const id of compositions.ids()) learn(id);
      const wake = (resourceId: string) => {
        const parent = parents.get(resourceId);
        if (parent !== undefined) onChange(parent);
      };
      const watches = [
        compositions.subscribe((id, before) => {
          forget(before);
          learn(id);
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

/** Pure: does the resource have these members of the spec, as far as it tells? */
function hasAll({ actual }: Observation, target: Readonly<Record<string, unknown>>, keys: readonly string[]): boolean {
  return keys.every((key) => !Object.hasOwn(actual, key) || isDeepStrictEqual(actual[key], lookUp(target, key)));
}
