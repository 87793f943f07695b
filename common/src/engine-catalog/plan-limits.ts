import { parametersOf } from "./engine-catalog.ts";
import { type PlanSize, planParameters } from "./plan-parameters.ts";
import type { Parameter } from "./parameter.ts";
import { parseQuantity, printQuantity } from "./quantity.ts";
import { lookUp } from "../look-up.ts";

/** A parameter of which a plan holds less. */
export interface PlanExcess {
  readonly name: string;
  /** The greatest value for the plan, as the engine prints it; undefined where even the least one is too much. */
  readonly greatest: string | undefined;
  /** What the plan has too little of. */
  readonly of: "memory" | "storage";
}

type Values = ReadonlyMap<string, number>;

const mib = 1024 ** 2;
const kib = 1024;

/** What is shared by all sessions takes this of the memory at most: the remainder is for sessions, and for the agent. */
const sharedShare = 0.6;
/** One sort, one maintenance or the temporary tables of one session. */
const sessionShare = 0.5;
const ofSessions = [
  "work_mem",
  "maintenance_work_mem",
  "autovacuum_work_mem",
  "temp_buffers",
  "logical_decoding_work_mem",
] as const;
/** A session that idles takes about as much beside what is shared. */
const connectionBytes = mib;
const fewConnections = 500;
/** Log that waits for a checkpoint, and log that is never removed, beside the data. */
const ofStorage = { max_wal_size: 0.5, min_wal_size: 0.25 } as const;

/**
 * Pure: which of the named parameters are more than a plan holds, given all that the instance is to run with; the parameters in
 * canonical form. Whatever is not named was there before.
 */
export function planExcesses(
  engine: string,
  version: string,
  plan: PlanSize,
  parameters: Readonly<Record<string, string>>,
  names: readonly string[],
): readonly PlanExcess[] {
  if (engine !== "postgresql") return [];
  const known = parametersOf(engine, version);
  const byPlan = planParameters(engine, plan);
  const bytesOf = (parameter: Parameter, text: string) => {
    const number = parameter.unit === null ? Number(text) : (parseQuantity(text, parameter.unit) ?? 0);
    return number * bytesIn(parameter);
  };
  const values = new Map<string, number>();
  for (const [name, parameter] of known) {
    const text = lookUp(parameters, name) ?? lookUp(byPlan, name) ?? parameter.default;
    if (text !== null) values.set(name, bytesOf(parameter, text));
  }
  return names.flatMap((name) => {
    const parameter = known.get(name);
    const standard = parameter && (lookUp(byPlan, name) ?? parameter.default);
    if (parameter === undefined || !Object.hasOwn(parameters, name)) return [];
    const greatest = greatestOf(name, values, plan);
    // What the plan itself brings is never too much.
    const most = Math.max(
      greatest?.value ?? Number.POSITIVE_INFINITY,
      standard == null ? 0 : bytesOf(parameter, standard),
    );
    if (greatest === undefined || (values.get(name) ?? 0) <= most) return [];
    return [{ name, greatest: printed(parameter, most), of: greatest.of }];
  });
}

/** Pure: in words for the user who set it. */
export function excessWords({ name, greatest, of }: PlanExcess): string {
  const most = greatest === undefined ? "no value of it fits beside the other parameters" : `it is ${greatest} at most`;
  return `this plan has too little ${of} for ${name}: ${most}`;
}

function bytesIn({ type, unit }: Parameter): number {
  if (type !== "bytes" || unit === null) return 1;
  return { byte: 1, B: 1, kB: kib, "8kB": 8 * kib, MB: mib, ms: 1, s: 1, min: 1 }[unit];
}

function printed(parameter: Parameter, value: number): string | undefined {
  const number = Math.floor(value / bytesIn(parameter));
  if (parameter.minimum !== null && number < parameter.minimum) return undefined;
  return parameter.unit === null ? String(number) : printQuantity(roundedDown(parameter, number), parameter.unit);
}

/** In whole MiB where it is as much: nobody wants the last byte of a share. */
function roundedDown(parameter: Parameter, number: number): number {
  const step = mib / bytesIn(parameter);
  return parameter.type === "bytes" && number > step ? Math.floor(number / step) * step : number;
}

function greatestOf(
  name: string,
  values: Values,
  plan: PlanSize,
): { readonly value: number; readonly of: PlanExcess["of"] } | undefined {
  const { memoryBytes, storageBytes } = plan;
  if (name === "max_wal_size" || name === "min_wal_size")
    return { value: storageBytes * ofStorage[name], of: "storage" };
  if ((ofSessions as readonly string[]).includes(name)) return { value: memoryBytes * sessionShare, of: "memory" };
  const shared = greatestShared(name, values, memoryBytes * sharedShare);
  if (shared === undefined) return undefined;
  const connections = Math.max(fewConnections, Math.floor(memoryBytes / connectionBytes));
  return { value: name === "max_connections" ? Math.min(shared, connections) : shared, of: "memory" };
}

/** What is shared grows by the same with each unit of a parameter, beside the others. */
function greatestShared(name: string, values: Values, budget: number): number | undefined {
  const at = (value: number) => sharedBytes(new Map([...values, [name, value]]));
  const none = at(0);
  const each = (at(mib) - none) / mib;
  return each <= 0 ? undefined : Math.floor((budget - none) / each);
}

/**
 * Pure: the shared memory of PostgreSQL 17 and 18, within a tenth of `postgres -C shared_memory_size` and never below it.
 * Locks have room for each session, worker and prepared transaction.
 */
export function sharedBytes(values: Values): number {
  const value = (name: string) => values.get(name) ?? 0;
  // Workers of the autovacuum and senders of log have slots, too.
  const sessions = value("max_connections") + value("max_worker_processes") + 30;
  const slots = sessions + value("max_prepared_transactions");
  const locks = value("max_locks_per_transaction") * 425 + value("max_pred_locks_per_transaction") * 270;
  return (
    8 * mib +
    value("shared_buffers") * 1.035 +
    sessions * value("track_activity_query_size") +
    slots * (8 * kib + locks) +
    value("pg_stat_statements.max") * 450
  );
}
