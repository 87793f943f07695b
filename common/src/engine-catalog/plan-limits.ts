import { parametersOf } from "./engine-catalog.ts";
import { type PlanSize, planParameters } from "./plan-parameters.ts";
import type { Parameter } from "./parameter.ts";
import { parseQuantity, printQuantity } from "./quantity.ts";
import { lookUp } from "../look-up.ts";

/** A parameter value that exceeds the resources of a plan. */
export interface PlanExcess {
  readonly name: string;
  /** Maximum for the plan, as the engine prints it; undefined if even the smallest value is too large. */
  readonly maximum: string | undefined;
  /** The resource that is too small. */
  readonly of: "memory" | "storage";
}

type Values = ReadonlyMap<string, number>;

const mib = 1024 ** 2;
const kib = 1024;

/** Maximum share of memory for shared memory; the remainder is for sessions and the agent. */
const sharedShare = 0.6;
/** Maximum share of memory for one sort, one maintenance command or the temporary tables of one session. */
const sessionShare = 0.5;
const sessionParameters = [
  "work_mem",
  "maintenance_work_mem",
  "autovacuum_work_mem",
  "temp_buffers",
  "logical_decoding_work_mem",
] as const;
/** Approximate memory of an idle session, beside shared memory. */
const connectionBytes = mib;
const connectionsFloor = 500;
/** Maximum share of memory for shared memory of an engine that only replays log, and its smallest buffers. */
export const replayShare = 0.75;
export const replayBuffersMib = 16;
/** Maximum shares of the storage for WAL: before a checkpoint forces its removal, and WAL that is never removed. */
const storageShares = { max_wal_size: 0.5, min_wal_size: 0.25 } as const;

/**
 * Pure: those of the named parameters that exceed the plan, given all parameters of the instance in canonical form.
 * Parameters that are not named were accepted earlier and are not checked.
 */
export function planExcesses(
  engine: string,
  version: string,
  plan: PlanSize,
  parameters: Readonly<Record<string, string>>,
  names: readonly string[],
): readonly PlanExcess[] {
  if (engine !== "postgresql") return [];
  const catalog = parametersOf(engine, version);
  const byPlan = planParameters(engine, plan);
  const values = valuesOf(engine, version, plan, parameters);
  return names.flatMap((name) => {
    const parameter = catalog.get(name);
    const standard = parameter && (lookUp(byPlan, name) ?? parameter.default);
    if (parameter === undefined || !Object.hasOwn(parameters, name)) return [];
    const maximum = maximumOf(name, values, plan);
    // The plan's own default is always accepted.
    const limit = Math.max(
      maximum?.value ?? Number.POSITIVE_INFINITY,
      standard == null ? 0 : bytesOf(parameter, standard),
    );
    if (maximum === undefined || (values.get(name) ?? 0) <= limit) return [];
    return [{ name, maximum: printed(parameter, limit), of: maximum.of }];
  });
}

/** Pure: true if an engine of this plan can replay log that was written under these settings. */
export function canReplay(
  engine: string,
  version: string,
  plan: PlanSize,
  settings: Readonly<Record<string, string>>,
): boolean {
  if (engine !== "postgresql") return true;
  const values = valuesOf(engine, version, plan, settings);
  return (
    sharedBytes(new Map([...values, ["shared_buffers", replayBuffersMib * mib]])) <= plan.memoryBytes * replayShare
  );
}

/** Pure: a message for the user who set the parameter. */
export function excessMessage({ name, maximum, of }: PlanExcess): string {
  const limit = maximum === undefined ? "no value of it fits beside the other parameters" : `it is ${maximum} at most`;
  return `this plan has too little ${of} for ${name}: ${limit}`;
}

/** Every parameter of the catalog, sizes in bytes. */
function valuesOf(
  engine: string,
  version: string,
  plan: PlanSize,
  parameters: Readonly<Record<string, string>>,
): Values {
  const byPlan = planParameters(engine, plan);
  const values = new Map<string, number>();
  for (const [name, parameter] of parametersOf(engine, version)) {
    const text = lookUp(parameters, name) ?? lookUp(byPlan, name) ?? parameter.default;
    if (text !== null) values.set(name, bytesOf(parameter, text));
  }
  return values;
}

function bytesOf(parameter: Parameter, text: string): number {
  const number = parameter.unit === null ? Number(text) : (parseQuantity(text, parameter.unit) ?? 0);
  return number * bytesIn(parameter);
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

/** Rounds down to full MiB if the value is larger than that. */
function roundedDown(parameter: Parameter, number: number): number {
  const step = mib / bytesIn(parameter);
  return parameter.type === "bytes" && number > step ? Math.floor(number / step) * step : number;
}

function maximumOf(
  name: string,
  values: Values,
  plan: PlanSize,
): { readonly value: number; readonly of: PlanExcess["of"] } | undefined {
  const { memoryBytes, storageBytes } = plan;
  if (name === "max_wal_size" || name === "min_wal_size")
    return { value: storageBytes * storageShares[name], of: "storage" };
  if ((sessionParameters as readonly string[]).includes(name))
    return { value: memoryBytes * sessionShare, of: "memory" };
  const shared = sharedMaximum(name, values, memoryBytes * sharedShare);
  if (shared === undefined) return undefined;
  const connections = Math.max(connectionsFloor, Math.floor(memoryBytes / connectionBytes));
  return { value: name === "max_connections" ? Math.min(shared, connections) : shared, of: "memory" };
}

/** Maximum value of a parameter for the shared memory budget. Shared memory is linear in each parameter. */
function sharedMaximum(name: string, values: Values, budget: number): number | undefined {
  const at = (value: number) => sharedBytes(new Map([...values, [name, value]]));
  const baseBytes = at(0);
  const bytesPerUnit = (at(mib) - baseBytes) / mib;
  return bytesPerUnit <= 0 ? undefined : Math.floor((budget - baseBytes) / bytesPerUnit);
}

/**
 * Pure: shared memory of PostgreSQL 17 and 18 in bytes. It is at most a tenth above `postgres -C shared_memory_size`,
 * and never below. The lock table has entries for each session, worker and prepared transaction.
 */
export function sharedBytes(values: Values): number {
  const value = (name: string) => values.get(name) ?? 0;
  // Autovacuum workers and WAL senders have process slots as well.
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
