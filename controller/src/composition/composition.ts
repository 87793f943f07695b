import { next } from "@holdfast/common/machine.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Action, Attachment, ResourceSpec } from "#resource-kind/resource-kind.ts";
import {
  type CompositionEffect,
  type CompositionEvent,
  type CompositionState,
  compositionLifecycle,
} from "./composition-lifecycle.ts";
import type { DesiredMember } from "./desired-member.ts";

/** Resources that come, change and go together, as they are asked for and as they were made. */
export type CompositionObject = Resource<CompositionSpec, CompositionStatus>;

/** As what users see it. */
export type Face = "project" | "stack" | "pipeline";

export const compositionKind = defineKind<CompositionObject>("composition", {
  goesWithOrganization: true,
  indexes: [faceAndName],
  quotas: (["project", "stack", "pipeline"] as const).map((face) => ({
    name: `${face}s`,
    words: `${face}s`,
    limit: 100,
    amountOf: ({ spec, status }) => (spec.face === face && status.state !== "Deleted" ? 1 : 0),
  })),
});

/** Index: those of one name, face and organization; one at most that is not Deleted. */
export function faceAndName({ metadata, spec }: CompositionObject): string {
  return nameKey(spec.face, metadata.organizationId, metadata.name);
}

export function nameKey(face: Face, organizationId: string, name: string): string {
  return `${face}/${organizationId}/${name}`;
}

/** Under which a face's names are claimed. */
export function nameKindOf(face: Face): { readonly name: string } {
  return { name: face };
}

export interface CompositionSpec {
  readonly face: Face;
  /** Sealed: the members that are asked for. */
  readonly sealedDesired: string;
  readonly monthlyCents: number;
  /** Absent for a project. */
  readonly template?: { readonly name: string; readonly version: string };
  /** What was accepted when it was launched or upgraded last; absent where nobody is asked. */
  readonly acceptedCents?: number;
  readonly zone?: string;
}

export interface CompositionStatus {
  readonly state: CompositionState;
  readonly since: number;
  readonly detail: string | null;
  /** It was Running once: what is made is not torn down by a failure any more. */
  readonly hasRun: boolean;
  /** The newest record of a deployment, launch or migration; it is in progress in every state but Running, Failed and Deleted. */
  readonly deploymentId: string;
  readonly members: readonly Member[];
  /** Somebody wants the deployment to end. */
  readonly isAborted?: true;
  /** Why the deployment does not come about, while what it made is rolled back. */
  readonly failure?: Failure;
  /** Of a stack that is being upgraded: what it becomes. */
  readonly upgrade?: Pick<CompositionSpec, "sealedDesired" | "monthlyCents" | "acceptedCents" | "template">;
  /** No progress until then fails the deployment; null while nothing is in progress. */
  readonly deadline: number | null;
  /** A measure of progress: a new text is progress. */
  readonly mark: string;
  /** Of a pipeline: whether all members were healthy when that was told last; absent before the first time. */
  readonly announcedHealthy?: boolean;
}

export interface Failure {
  readonly cause: "failed" | "aborted";
  readonly reason: string;
}

/** One resource of a composition. Its id is fixed before it is made, so that it is never made twice. */
export interface Member {
  readonly name: string;
  readonly kind: string;
  readonly id: string;
  /** Name of the resource among those of its kind. */
  readonly resourceName: string;
  /** Names of the members that must run before it is made, and that go after it. */
  readonly needs: readonly string[];
  /** `planned`: not made; `made`: it never ran; `ready`: it ran; `leaving`: it is to go, and goes once it is gone. */
  readonly step: "planned" | "made" | "ready" | "leaving";
  /** Record of the deployment that made it. */
  readonly madeBy: string;
  /** False: the newest descriptor does not name it. */
  readonly isManaged: boolean;
  /** Does the resource itself say that it belongs to the composition? */
  readonly isMarked: boolean;
  /** Sealed: the spec that it was made with, or was changed to in place. */
  readonly sealedSpec: string;
  readonly change?: MemberChange;
  /** Of a consumer: what it is told of. */
  readonly attachments?: readonly Attachment[];
  /** Versions of the outputs that it was told of last; absent until it is in this deployment. */
  readonly wiredTo?: string;
}

/** A change in place of a member. `wanted`: not begun; `begun`: asked of the resource; `failed`: what was before is to be asked for; `undoing`: it is. */
export interface MemberChange {
  readonly action: Action;
  readonly step: "wanted" | "begun" | "failed" | "undoing";
  /** Members of the spec that differ. */
  readonly keys: readonly string[];
  readonly sealedTarget: string;
  /** Why it is undone. */
  readonly error?: string;
}

/** No progress for so long means stuck (spec 1, Limits). */
export const stuckAfterMs = 10 * 60_000;

/** Seals and opens the specs of one composition. */
export interface CompositionSeal {
  seal(id: string, spec: unknown): string;
  spec(id: string, sealed: string): ResourceSpec;
  desired(composition: CompositionObject): readonly DesiredMember[];
}

export function createCompositionSeal(sealer: Pick<Sealer, "seal" | "open">): CompositionSeal {
  const open = (id: string, sealed: string) => JSON.parse(sealer.open(sealed, keyOf(compositionKind, id)));
  return {
    seal: (id, spec) => sealer.seal(JSON.stringify(spec), keyOf(compositionKind, id)),
    spec: open,
    desired: ({ metadata, spec }) => open(metadata.id, spec.sealedDesired),
  };
}

/** Pure: the composition after an event, and what comes with it; undefined where the event means nothing. */
export function afterEvent(
  composition: CompositionObject,
  event: CompositionEvent,
  now: number,
  change: Partial<CompositionStatus> = {},
): { readonly after: CompositionObject; readonly effect: CompositionEffect } | undefined {
  const { metadata, status } = composition;
  const row = next(compositionLifecycle, status.state, event);
  if (row === undefined) return undefined;
  const isEnd = row[2] === "Running" || row[2] === "Failed" || row[2] === "Deleted";
  const isGoing = row[2] === "Deleting";
  const { isAborted, ...rest } = status;
  // What was said of one deployment ends with it.
  const kept = isEnd || isGoing || isAborted !== true ? rest : status;
  return {
    after: {
      ...composition,
      metadata: { ...metadata, updatedAt: now, ...(isGoing && { deletionRequestedAt: now }) },
      status: {
        ...kept,
        state: row[2],
        since: now,
        deadline: isEnd || isGoing ? null : now + stuckAfterMs,
        mark: "",
        ...change,
      },
    },
    effect: row[3],
  };
}

/** Pure: with other members, or another status beside its state. */
export function withStatus(
  composition: CompositionObject,
  change: Partial<CompositionStatus>,
  now: number,
): CompositionObject {
  const { metadata, status } = composition;
  return { ...composition, metadata: { ...metadata, updatedAt: now }, status: { ...status, ...change } };
}

/** Pure: with one member changed; undefined removes it. */
export function withMember(
  composition: CompositionObject,
  id: string,
  change: Partial<Member> | undefined,
  now: number,
): CompositionObject {
  const members = composition.status.members.flatMap((member) => {
    if (member.id !== id) return [member];
    return change === undefined ? [] : [{ ...member, ...change }];
  });
  return withStatus(composition, { members }, now);
}

/** Pure: without a change in place. */
export function unchanged(member: Member): Member {
  const { change: _, ...rest } = member;
  return rest;
}

/** Pure: all members on their way out; what was never made is out already. */
export function leaversOf(members: readonly Member[]): readonly Member[] {
  return members.flatMap((member): Member[] =>
    member.step === "planned" ? [] : [{ ...unchanged(member), step: "leaving" }],
  );
}
