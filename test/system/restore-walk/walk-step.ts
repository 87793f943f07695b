/** Processes that a walk ends with SIGKILL. */
export const walkVictims = ["engine", "agent", "keeper", "machine", "controller", "store", "etcd"] as const;
export type WalkVictim = (typeof walkVictims)[number];

/** Path by which a user creates or drops an object. */
export type Via = "sql" | "api";

/** A step of a walk with a service of any engine. */
export type ServiceStep =
  /** `value` null resets the parameter. */
  | { readonly kind: "set-parameter"; readonly name: string; readonly value: string | null }
  | { readonly kind: "restart" }
  | { readonly kind: "resize"; readonly plan: string }
  | { readonly kind: "expand"; readonly storageGb: number }
  | { readonly kind: "add-node" | "remove-node" | "switchover" | "failover" }
  | { readonly kind: "upgrade"; readonly version: string }
  | { readonly kind: "kill"; readonly victim: WalkVictim }
  | { readonly kind: "store-outage"; readonly ms: number }
  | { readonly kind: "backup" | "rotate-key" }
  | { readonly kind: "rest"; readonly ms: number };

export type ServiceStepKind = ServiceStep["kind"];

/** A step of a walk with a PostgreSQL. Every name is used once in a walk. */
export type WalkStep =
  | ServiceStep
  | { readonly kind: "create-database"; readonly name: string; readonly via: Via }
  /** `atRest`: nothing is written for a while before, so that no commit stands between. */
  | { readonly kind: "drop-database"; readonly name: string; readonly via: Via; readonly atRest: boolean }
  /** A DROP DATABASE that a timeout cancels after it began. */
  | { readonly kind: "half-drop-database"; readonly name: string }
  /** ALTER DATABASE ... WITH this: nothing is done in the database from then on. */
  | { readonly kind: "close-database"; readonly name: string; readonly option: string }
  | { readonly kind: "create-role" | "drop-role"; readonly name: string; readonly via: Via }
  | { readonly kind: "create-extension" | "drop-extension"; readonly database: string; readonly name: string }
  | {
      readonly kind: "create-table";
      readonly database: string;
      readonly name: string;
      readonly rows: number;
      readonly unlogged: boolean;
    }
  | { readonly kind: "drop-table"; readonly database: string; readonly name: string }
  | { readonly kind: "create-sequence"; readonly database: string; readonly name: string }
  | { readonly kind: "advance-sequence"; readonly database: string; readonly name: string; readonly by: number }
  /** `name` is the object's oid. */
  | { readonly kind: "create-large-object"; readonly database: string; readonly name: string; readonly bytes: number }
  | { readonly kind: "drop-large-object"; readonly database: string; readonly name: string }
  | { readonly kind: "create-tablespace"; readonly name: string }
  /** ALTER DATABASE ... SET. */
  | { readonly kind: "set-for-database"; readonly database: string; readonly name: string; readonly value: string }
  | { readonly kind: "prepare" | "begin"; readonly name: string }
  | { readonly kind: "end-prepared" | "end"; readonly name: string; readonly commits: boolean };

export type WalkStepKind = WalkStep["kind"];

/** A step of a walk with a Valkey. */
export type ValkeyStep =
  | ServiceStep
  /** A script writes this number of rows, all of them or none. */
  | { readonly kind: "script"; readonly rows: number }
  /** A row that expires. */
  | { readonly kind: "expire"; readonly ms: number }
  | { readonly kind: "flush" }
  | { readonly kind: "create-user" | "drop-user"; readonly name: string };

/** A step, and a process that is killed this long after it began. */
export interface PlannedStep<S = WalkStep> {
  readonly step: S;
  readonly kill?: { readonly victim: WalkVictim; readonly afterMs: number };
}

/** A moment to restore to, as a part of the window or by the edge of a step. */
export type PlannedMoment =
  | { readonly of: "window"; readonly fraction: number }
  | { readonly of: "step"; readonly fraction: number; readonly edge: "begin" | "end"; readonly offsetMs: number };

/** A part of walks that can be excluded. */
export type WalkFeature =
  | "recovery-parameters"
  | "plans"
  | "half-dropped-databases"
  | "databases-dropped-at-rest"
  | "moment-of-backups"
  | "session-timeouts"
  | "extreme-values"
  | "undelete"
  | "window-at-rest"
  | "steps-in-order";

/** Features that walks exclude until they are fixed, each with the point. */
const reasons: Readonly<Partial<Record<WalkFeature, string>>> = {};

export const excludedFeatures: ReadonlySet<WalkFeature> = new Set(Object.keys(reasons) as WalkFeature[]);
