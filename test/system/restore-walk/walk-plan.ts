import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { postgresqlExtensions } from "@holdfast/common/engine-catalog/postgresql-extensions.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { postgresqlParameters } from "@holdfast/common/engine-catalog/postgresql-parameters.ts";
import { createRandom, type Random } from "@holdfast/testing/random.ts";
import { parameterValue } from "./parameter-value.ts";
import {
  type PlannedMoment,
  type PlannedStep,
  type ServiceStep,
  type WalkFeature,
  type WalkStep,
  walkVictims,
} from "./walk-step.ts";

export interface WalkChoice {
  readonly seed: number;
  /** Features that are excluded. */
  readonly without: ReadonlySet<WalkFeature>;
  /** Version that a step upgrades the service to; absent: no upgrade. */
  readonly upgradeTo?: string;
  /** True: omits steps that take many seconds, such as a failover. */
  readonly isShort?: boolean;
}

/** Parameters that a recovery needs at least as much of as the log was written with. */
const recoveryParameters: ReadonlySet<string> = new Set([
  "max_connections",
  "max_worker_processes",
  "max_prepared_transactions",
  "max_locks_per_transaction",
]);
/** Parameters that end or cancel slow work. */
const isTimeout = (name: string) => name.endsWith("_timeout") && !name.startsWith("checkpoint");

/** Parameters that a database's owner may set for it. */
const databaseParameters: readonly { readonly name: string; readonly values: readonly string[] }[] = [
  { name: "default_transaction_read_only", values: ["on"] },
  { name: "default_transaction_isolation", values: ["serializable", "repeatable read"] },
  { name: "default_table_access_method", values: ["heap"] },
  { name: "work_mem", values: ["64kB", "4MB"] },
  { name: "TimeZone", values: ["Asia/Kathmandu"] },
  { name: "DateStyle", values: ["German", "SQL, DMY"] },
  { name: "IntervalStyle", values: ["iso_8601"] },
  { name: "bytea_output", values: ["escape"] },
  { name: "search_path", values: ["nowhere"] },
  { name: "synchronous_commit", values: ["off", "remote_apply"] },
  { name: "standard_conforming_strings", values: ["off"] },
  { name: "enable_seqscan", values: ["off"] },
  { name: "statement_timeout", values: ["1", "1000"] },
  { name: "lock_timeout", values: ["1"] },
  { name: "idle_session_timeout", values: ["1"] },
  { name: "idle_in_transaction_session_timeout", values: ["1"] },
  { name: "transaction_timeout", values: ["1", "1000"] },
];

const plans = ["tier-1", "tier-2", "tier-4"];
const mostStorageGb = 4;
const mostNodes = 2;
/** Extensions that a database is created with, and one that creates another one. */
const unfit = ["plpgsql", "pg_stat_statements", "earthdistance"];
const extensions = postgresqlExtensions.filter((each) => !unfit.includes(each));

interface Placed {
  readonly database: string;
  readonly name: string;
}

/** State of a service of any engine after the steps so far, if each succeeded. */
export interface ServiceLife {
  count: number;
  plan: string;
  storageGb: number;
  nodes: number;
  parameters: string[];
}

export const newServiceLife = (): ServiceLife => ({ count: 0, plan: "tier-1", storageGb: 1, nodes: 1, parameters: [] });

interface Life extends ServiceLife {
  databases: string[];
  roles: { name: string; via: "sql" | "api" }[];
  extensions: Placed[];
  tables: Placed[];
  sequences: Placed[];
  largeObjects: Placed[];
  prepared: string[];
  open: string[];
  settings: Placed[];
  isUpgraded: boolean;
}

/** A step that may come next, with its weight, and its condition. */
export interface Rule<L, S> {
  readonly weight: number;
  readonly feature?: WalkFeature;
  readonly isLong?: true;
  readonly when?: (life: L, choice: WalkChoice) => boolean;
  readonly next: (life: L, random: Random, choice: WalkChoice) => S;
}

export const name = (life: ServiceLife, prefix: string) => {
  life.count += 1;
  return `${prefix}_${life.count}`;
};
const somewhere = (life: Life, random: Random) => random.pick([defaultDatabase, ...life.databases]);
const randomVia = (random: Random) => random.pick(["sql", "api"] as const);

/** Removes a random element; returns it. */
export function removeRandom<T>(from: T[], random: Random): T {
  const index = random.between(0, from.length - 1);
  const [removed] = from.splice(index, 1);
  if (removed === undefined) throw new Error("nothing to take from");
  return removed;
}

function put(list: Placed[], placed: Placed): Placed {
  list.push(placed);
  return placed;
}

function withoutDatabase(life: Life, random: Random): string {
  const dropped = removeRandom(life.databases, random);
  for (const list of [life.extensions, life.tables, life.sequences, life.largeObjects, life.settings])
    list.splice(0, list.length, ...list.filter(({ database }) => database !== dropped));
  return dropped;
}

/** Sets a parameter, or resets one that was set. */
export const parameterRule = (
  possibleOf: (choice: WalkChoice) => readonly Parameter[],
): Rule<ServiceLife, ServiceStep> => ({
  weight: 10,
  next(life, random, choice) {
    if (life.parameters.length > 0 && random.next() < 0.25)
      return { kind: "set-parameter", name: removeRandom(life.parameters, random), value: null };
    const parameter = random.pick(possibleOf(choice));
    life.parameters.push(parameter.name);
    return {
      kind: "set-parameter",
      name: parameter.name,
      value: parameterValue(parameter, random, !choice.without.has("extreme-values")),
    };
  },
});

/** Rules of every engine. */
export const serviceRules = {
  restart: { weight: 3, next: () => ({ kind: "restart" }) },
  resize: {
    weight: 2,
    feature: "plans",
    next(life, random) {
      life.plan = random.pick(plans.filter((plan) => plan !== life.plan));
      return { kind: "resize", plan: life.plan };
    },
  },
  expand: {
    weight: 1,
    when: ({ storageGb }) => storageGb < mostStorageGb,
    next(life) {
      life.storageGb += 1;
      return { kind: "expand", storageGb: life.storageGb };
    },
  },
  addNode: {
    weight: 3,
    isLong: true,
    when: ({ nodes }) => nodes < mostNodes,
    next(life) {
      life.nodes += 1;
      return { kind: "add-node" };
    },
  },
  removeNode: {
    weight: 1,
    isLong: true,
    when: ({ nodes }) => nodes > 1,
    next(life) {
      life.nodes -= 1;
      return { kind: "remove-node" };
    },
  },
  switchover: { weight: 3, isLong: true, when: ({ nodes }) => nodes > 1, next: () => ({ kind: "switchover" }) },
  failover: { weight: 3, isLong: true, when: ({ nodes }) => nodes > 1, next: () => ({ kind: "failover" }) },
  kill: { weight: 6, next: (_life, random) => ({ kind: "kill", victim: random.pick(walkVictims) }) },
  storeOutage: { weight: 2, next: (_life, random) => ({ kind: "store-outage", ms: random.between(500, 8_000) }) },
  backup: { weight: 3, next: () => ({ kind: "backup" }) },
  rotateKey: { weight: 1, next: () => ({ kind: "rotate-key" }) },
  rest: { weight: 2, next: (_life, random) => ({ kind: "rest", ms: random.between(500, 5_000) }) },
} satisfies Readonly<Record<string, Rule<ServiceLife, ServiceStep>>>;

/** Rules of the next step. The steps of a seed depend on their order. */
const rules: readonly Rule<Life, WalkStep>[] = [
  parameterRule(({ without }) =>
    postgresqlParameters.filter(
      (each) =>
        !(without.has("recovery-parameters") && recoveryParameters.has(each.name)) &&
        !(without.has("session-timeouts") && isTimeout(each.name)),
    ),
  ),
  serviceRules.restart,
  serviceRules.resize,
  serviceRules.expand,
  serviceRules.addNode,
  serviceRules.removeNode,
  serviceRules.switchover,
  serviceRules.failover,
  {
    weight: 2,
    isLong: true,
    when: ({ isUpgraded, prepared }, { upgradeTo }) => upgradeTo !== undefined && !isUpgraded && prepared.length === 0,
    next(life, _random, { upgradeTo = "" }) {
      life.isUpgraded = true;
      return { kind: "upgrade", version: upgradeTo };
    },
  },
  {
    weight: 5,
    when: ({ databases }) => databases.length < 4,
    next(life, random) {
      const created = name(life, "base");
      life.databases.push(created);
      return { kind: "create-database", name: created, via: randomVia(random) };
    },
  },
  {
    weight: 2,
    when: ({ databases }) => databases.length > 0,
    next: (life, random, { without }) => ({
      kind: "drop-database",
      name: withoutDatabase(life, random),
      via: randomVia(random),
      atRest: !without.has("databases-dropped-at-rest") && random.next() < 0.5,
    }),
  },
  {
    weight: 2,
    feature: "half-dropped-databases",
    when: ({ databases }) => databases.length > 0,
    next: (life, random) => ({ kind: "half-drop-database", name: withoutDatabase(life, random) }),
  },
  {
    weight: 1,
    when: ({ databases }) => databases.length > 0,
    next: (life, random) => ({
      kind: "close-database",
      name: withoutDatabase(life, random),
      option: random.pick(["ALLOW_CONNECTIONS false", "CONNECTION LIMIT 0", "IS_TEMPLATE true"]),
    }),
  },
  {
    weight: 5,
    next(life, random) {
      const created = { name: name(life, "role"), via: randomVia(random) };
      life.roles.push(created);
      return { kind: "create-role", ...created };
    },
  },
  {
    weight: 2,
    when: ({ roles }) => roles.length > 0,
    next: (life, random) => ({ kind: "drop-role", ...removeRandom(life.roles, random) }),
  },
  {
    weight: 4,
    next(life, random) {
      const database = somewhere(life, random);
      const installed = new Set(life.extensions.flatMap((each) => (each.database === database ? each.name : [])));
      const extension = random.pick(extensions.filter((each) => !installed.has(each)));
      return { kind: "create-extension", ...put(life.extensions, { database, name: extension }) };
    },
  },
  {
    weight: 1,
    when: ({ extensions: installed }) => installed.length > 0,
    next: (life, random) => ({ kind: "drop-extension", ...removeRandom(life.extensions, random) }),
  },
  {
    weight: 6,
    next: (life, random) => ({
      kind: "create-table",
      ...put(life.tables, { database: somewhere(life, random), name: name(life, "table") }),
      rows: random.pick([0, 10, 1_000, 20_000]),
      unlogged: random.next() < 0.3,
    }),
  },
  {
    weight: 2,
    when: ({ tables }) => tables.length > 0,
    next: (life, random) => ({ kind: "drop-table", ...removeRandom(life.tables, random) }),
  },
  {
    weight: 3,
    next: (life, random) => ({
      kind: "create-sequence",
      ...put(life.sequences, { database: somewhere(life, random), name: name(life, "sequence") }),
    }),
  },
  {
    weight: 3,
    when: ({ sequences }) => sequences.length > 0,
    next: (life, random) => ({ kind: "advance-sequence", ...random.pick(life.sequences), by: random.between(1, 100) }),
  },
  {
    weight: 4,
    next(life, random) {
      life.count += 1;
      const placed = { database: somewhere(life, random), name: String(1_000_000 + life.count) };
      return {
        kind: "create-large-object",
        ...put(life.largeObjects, placed),
        bytes: random.pick([0, 1, 5_000, 500_000]),
      };
    },
  },
  {
    weight: 1,
    when: ({ largeObjects }) => largeObjects.length > 0,
    next: (life, random) => ({ kind: "drop-large-object", ...removeRandom(life.largeObjects, random) }),
  },
  {
    weight: 3,
    when: ({ databases }) => databases.length > 0,
    next(life, random, { without }) {
      const database = random.pick(life.databases);
      const defined = new Set(life.settings.flatMap((each) => (each.database === database ? each.name : [])));
      const possible = databaseParameters.filter(
        (each) => !defined.has(each.name) && !(without.has("session-timeouts") && isTimeout(each.name)),
      );
      // A database that has all settings gets one of them again.
      const { name: parameter, values } = random.pick(possible.length > 0 ? possible : databaseParameters.slice(0, 1));
      const placed = put(life.settings, { database, name: parameter });
      return { kind: "set-for-database", ...placed, value: random.pick(values) };
    },
  },
  { weight: 1, next: (life) => ({ kind: "create-tablespace", name: name(life, "space") }) },
  {
    weight: 3,
    when: ({ prepared }) => prepared.length < 3,
    next(life) {
      const created = name(life, "prepared");
      life.prepared.push(created);
      return { kind: "prepare", name: created };
    },
  },
  {
    weight: 2,
    when: ({ prepared }) => prepared.length > 0,
    next: (life, random) => ({
      kind: "end-prepared",
      name: removeRandom(life.prepared, random),
      commits: random.next() < 0.7,
    }),
  },
  {
    weight: 3,
    when: ({ open }) => open.length < 2,
    next(life) {
      const created = name(life, "open");
      life.open.push(created);
      return { kind: "begin", name: created };
    },
  },
  {
    weight: 3,
    when: ({ open }) => open.length > 0,
    next: (life, random) => ({ kind: "end", name: removeRandom(life.open, random), commits: random.next() < 0.7 }),
  },
  serviceRules.kill,
  serviceRules.storeOutage,
  serviceRules.backup,
  serviceRules.rotateKey,
  serviceRules.rest,
];

/** Share of steps in which a process is killed. */
const killed = 0.15;

/** The steps of a walk, without an end. */
export function planSteps(choice: WalkChoice): Generator<PlannedStep, never> {
  const life: Life = {
    ...newServiceLife(),
    databases: [],
    roles: [],
    extensions: [],
    tables: [],
    sequences: [],
    largeObjects: [],
    prepared: [],
    open: [],
    settings: [],
    isUpgraded: false,
  };
  return drawSteps(rules, life, choice);
}

/** Steps by these rules, without an end. */
export function* drawSteps<L, S extends { readonly kind: string }>(
  all: readonly Rule<L, S>[],
  life: L,
  choice: WalkChoice,
): Generator<PlannedStep<S | Extract<ServiceStep, { kind: "restart" }>>, never> {
  const random = createRandom(choice.seed);
  const offered = all.filter(
    ({ feature, isLong }) =>
      !(feature !== undefined && choice.without.has(feature)) && !(choice.isShort === true && isLong === true),
  );
  for (;;) {
    const possible = offered.filter(({ when }) => when?.(life, choice) ?? true);
    const step = weighted(possible, random).next(life, random, choice);
    yield random.next() < killed
      ? { step, kill: { victim: random.pick(walkVictims), afterMs: random.between(0, 1_500) } }
      : { step };
    if (step.kind === "set-parameter" && random.next() < 0.3) yield { step: { kind: "restart" } };
  }
}

function weighted<L, S>(possible: readonly Rule<L, S>[], random: Random): Rule<L, S> {
  let remaining = random.next() * possible.reduce((sum, { weight }) => sum + weight, 0);
  const found = possible.find(({ weight }) => {
    remaining -= weight;
    return remaining < 0;
  });
  return found ?? random.pick(possible);
}

/** Moments to restore to; every second one is near the start or the end of a step. */
export function planMoments(seed: number, count: number): readonly PlannedMoment[] {
  const random = createRandom(seed).fork();
  return Array.from({ length: count }, (_, index): PlannedMoment => {
    const fraction = random.next();
    if (index % 2 === 1) return { of: "window", fraction };
    const edge = random.pick(["begin", "end"] as const);
    return { of: "step", fraction, edge, offsetMs: random.between(-1_000, 1_000) };
  });
}
