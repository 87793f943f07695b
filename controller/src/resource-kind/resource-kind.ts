import type { FieldFault } from "@holdfast/common/errors.ts";
import type { Watch } from "#kernel/store/store.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { Attached } from "./environment-of.ts";
import type { Outputs } from "./outputs.ts";

/** The spec of a resource: plain JSON, by the schema of its kind. */
export type ResourceSpec = Readonly<Record<string, unknown>>;

/** What one resource costs a month. */
export interface CostLine {
  readonly description: string;
  /** Whole cents. */
  readonly cents: number;
  /** The cost depends on use, and is this at most. */
  readonly isCeiling: boolean;
}

/** A difference at one path, such as `plan_name` or `env.KEY`. */
export interface Change {
  readonly path: string;
  /** Undefined where there was nothing, as is `after` where there is nothing any more. */
  readonly before: unknown;
  readonly after: unknown;
  /** The values are not to be shown. */
  readonly isSecret?: true;
}

/** What becomes of a resource whose spec was changed. */
export type Difference =
  | { readonly change: "unchanged" }
  | { readonly change: "inPlace"; readonly action: Action; readonly changes: readonly Change[] }
  /** It can be written down; what is there stays as it is. */
  | { readonly change: "recorded"; readonly changes: readonly Change[] };

/** Changes in place (spec 3, Upgrade plan). */
export type Action = "redeploy_app" | "scale_app" | "scale_service";

/** One resource that a composition makes, with all that is fixed before it is made. */
export interface NewResource {
  readonly id: string;
  readonly name: string;
  readonly organizationId: string;
  readonly spec: ResourceSpec;
  readonly owner: Owner;
}

/** The parent of a resource. */
export interface Owner {
  readonly kind: string;
  readonly id: string;
}

/** What was put into a unit of work that may not come about. */
export interface Put {
  /** The transaction did not come about. */
  giveBack(): void;
}

export type Phase = "absent" | "creating" | "running" | "changing" | "failed" | "deleting";

export interface Observation {
  readonly phase: Phase;
  readonly healthy: boolean;
  /** Why it is not running or healthy; null while there is nothing to say. */
  readonly detail: string | null;
  readonly progressPct: number;
  /** Members of the spec as they are in truth. */
  readonly actual: ResourceSpec;
  /** Another text whenever its outputs may differ, such as after a reset of its password. */
  readonly outputsVersion: string;
}

/** Of a resource that does not exist. */
export const absent: Observation = {
  phase: "absent",
  healthy: false,
  detail: "It is gone.",
  progressPct: 0,
  actual: {},
  outputsVersion: "",
};

/** Another resource whose outputs a consumer gets. */
export interface Attachment {
  /** Logical name. */
  readonly name: string;
  /** Absent: made of the name. */
  readonly prefix?: string;
}

/** Of kinds whose resources are told how to reach others. */
export interface ConsumerFacet {
  attachmentsOf(spec: ResourceSpec): readonly Attachment[];
  /** Names of the variables that users set. */
  variablesOf(spec: ResourceSpec): readonly string[];
  /** Tells it of what is attached, in the caller's unit of work; the same again is no change. It makes its variables by `environmentOf`. */
  wire(unit: UnitOfWork, id: string, attached: readonly Attached[], signal: AbortSignal): Promise<void>;
}

/**
 * What a kind of resource owes to whoever composes resources. `create`, `act`, `mark` and `remove` add to the caller's unit of work,
 * so that what is done and the record of it are one transaction, and may be asked again after a crash.
 */
export interface ResourceKind {
  readonly kind: string;
  /** Other names in descriptors, each with the members of the spec that the name implies. */
  readonly aliases: Readonly<Record<string, ResourceSpec>>;
  /** JSON Schema 2020-12 of the spec as users write it; `implied` are the members that an alias brings. */
  schema(implied: ResourceSpec): Readonly<Record<string, unknown>>;
  /** Pure: defaults filled in, each member under its one name. */
  normalize(spec: ResourceSpec): ResourceSpec;
  /** Pure: what the schema cannot say, of a normalized spec. Fields are below the spec. */
  faults(spec: ResourceSpec): readonly FieldFault[];
  /** Why the resource cannot be had here; undefined when it can. */
  unavailable(spec: ResourceSpec): string | undefined;
  monthlyCost(spec: ResourceSpec): readonly CostLine[];
  /** Pure; both specs are normalized. */
  diff(before: ResourceSpec, after: ResourceSpec): Difference;
  /** What it takes of quotas of the organization. */
  quotaOf(spec: ResourceSpec): Readonly<Record<string, number>>;
  /** Scopes that a caller needs to have one made or changed. */
  readonly scopes: readonly string[];
  create(unit: UnitOfWork, resource: NewResource, signal: AbortSignal): Promise<Put>;
  /** Begins a change in place; absent for a kind that has none. */
  act?(unit: UnitOfWork, id: string, action: Action, target: ResourceSpec, signal: AbortSignal): Promise<void>;
  /** Writes down whose it is; undefined: the organization's own. */
  mark(unit: UnitOfWork, id: string, owner: Owner | undefined, signal: AbortSignal): Promise<void>;
  /** Why it must not be removed; undefined when it may be. */
  protectedBy(id: string): string | undefined;
  /** Asks for its removal; `isOrderly` false for one that was never of use. False when there is nothing to write. */
  remove(unit: UnitOfWork, id: string, options: { readonly isOrderly: boolean }, signal: AbortSignal): Promise<boolean>;
  /** `isFresh`: nothing that was committed before is missed. An absent one is always absent in truth. */
  observe(id: string, signal: AbortSignal, options?: { readonly isFresh: boolean }): Promise<Observation>;
  /** Another text whenever an observation may differ; cheap. */
  version(id: string): string;
  /** Calls back with ids of resources that may have changed. */
  subscribe(onChange: (id: string) => void): Watch;
  /** What others need to reach it, its secrets too; undefined before it is there. */
  outputs(id: string, signal: AbortSignal): Promise<Outputs | undefined>;
  /** The port that others reach it at, where users choose it. */
  portOf?(spec: ResourceSpec): number | undefined;
  readonly consumer?: ConsumerFacet;
}
