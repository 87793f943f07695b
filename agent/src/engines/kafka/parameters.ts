import { setTimeout as sleep } from "node:timers/promises";
import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import { ownNumber } from "./layout.ts";
import { type Connection, isDisconnection } from "./protocol/connection.ts";
import { errorCodes, KafkaRefusal } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";
import {
  alterSettings,
  describeSettings,
  resourceTypes,
  type SettingChange,
  settingSources,
  type StoredSetting,
} from "./stored-settings.ts";

export const minInSync = "min.insync.replicas";
const defaultReplicationFactor = "default.replication.factor";
const transactionsTopic = "__transaction_state";

/** Threads that a running broker adds and removes: in one change it at most doubles or halves their number. */
const threads: ReadonlySet<string> = new Set([
  "background.threads",
  "log.cleaner.threads",
  "num.io.threads",
  "num.network.threads",
  "num.recovery.threads.per.data.dir",
  "num.replica.fetchers",
]);

/** True if writes with acks=all need two replicas by default, and the user set no value. */
export function defaultMinInSyncIsTwo(instance: Pick<Instance, "spec">): boolean {
  const isDefault = lookUp(instance.spec.parameters, minInSync) === undefined;
  return isDefault && effectiveParameters(instance).get(minInSync) === "2";
}

/** Values of the catalog's parameters that the broker runs with. */
export async function runningParameters(instance: Instance, session: Connection): Promise<Map<string, string>> {
  const found = await describeSettings(session, brokerOf(instance), [...effectiveParameters(instance).keys()]);
  return new Map([...found].map(([name, { value }]) => [name, value]));
}

/** Number of replicas of topics that the session's broker creates. */
export async function runningReplicationFactor(session: Connection, number: number): Promise<number> {
  const broker = { type: resourceTypes.broker, name: String(number) };
  return Number(
    (await describeSettings(session, broker, [defaultReplicationFactor])).get(defaultReplicationFactor)?.value,
  );
}

/** Has the session's own broker require two in-sync replicas. Another broker would refuse the call. */
export function raiseMinInSync(session: Connection, number: number): Promise<void> {
  return alterSettings(session, { type: resourceTypes.broker, name: String(number) }, [[minInSync, "2"]]);
}

/** Has the topic of transactions, whose setting is its own, require two. It exists once there was a transaction. */
export async function raiseMinInSyncOfTransactions(session: Connection): Promise<void> {
  try {
    await alterSettings(session, { type: resourceTypes.topic, name: transactionsTopic }, [[minInSync, "2"]]);
  } catch (error) {
    if (!(error instanceof KafkaRefusal) || error.code !== errorCodes.unknownTopicOrPartition) throw error;
  }
}

const brokerOf = (instance: Instance) => ({ type: resourceTypes.broker, name: String(ownNumber(instance)) });

/** From one thread to the greatest number takes six changes. */
const changesMax = 10;

/**
 * Applies live parameters to the running broker, which stores them with the cluster's metadata, where they win over its
 * file. Throws EngineRefused for a value that it rejects. In a cluster that has grown, min.insync.replicas becomes 2
 * once each partition has a second replica (`raiseMinInSync`): until then writes with acks=all would be refused.
 */
export async function applyParameters(instance: Instance, signal: AbortSignal): Promise<void> {
  for (let changes = 0; changes < changesMax; changes += 1) {
    try {
      if (await withSession(instance, signal, (session) => approachParameters(instance, session))) return;
    } catch (error) {
      // A broker that stops threads of its network closes their connections. What it has not changed is changed again.
      if (isDisconnection(error) && changes + 1 < changesMax) continue;
      if (error instanceof KafkaRefusal && isInvalid(error.code))
        throw new EngineRefused(error.message, { cause: error });
      throw error;
    }
  }
}

/** Makes the next changes. Resolves with true if they are the last ones. */
async function approachParameters(instance: Instance, session: Connection): Promise<boolean> {
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  const desired = new Map(
    [...effectiveParameters(instance)].filter(([name]) => catalog.get(name)?.needsRestart === false),
  );
  const stored = await describeSettings(session, brokerOf(instance), null);
  if (defaultMinInSyncIsTwo(instance) && stored.get(minInSync)?.value === "1") desired.delete(minInSync);
  const changes = nextChanges({ stored, desired, isParameter: (name) => catalog.has(name) });
  if (changes.length === 0) return true;
  await alterSettings(session, brokerOf(instance), changes);
  await untilRunning(instance, session, changes);
  return changes.every(([name, value]) => value === null || value === desired.get(name));
}

/**
 * The next changes of a broker's settings, by which each approaches its desired value, and the removal of those that
 * are no parameters any more.
 */
export function nextChanges({
  stored,
  desired,
  isParameter,
}: {
  readonly stored: ReadonlyMap<string, StoredSetting>;
  readonly desired: ReadonlyMap<string, string>;
  readonly isParameter: (name: string) => boolean;
}): SettingChange[] {
  const former = [...stored].filter(([name, { source }]) => source === settingSources.broker && !isParameter(name));
  const changed = [...desired].flatMap(([name, value]): SettingChange[] => {
    const running = stored.get(name)?.value ?? "";
    if (isSame(running, value)) return [];
    return [[name, threads.has(name) && running !== "" ? nextThreads(Number(running), Number(value)) : value]];
  });
  return [...former.map(([name]): SettingChange => [name, null]), ...changed];
}

const nextThreads = (from: number, to: number): string =>
  String(Math.min(Math.max(to, Math.floor(from / 2)), 2 * from));

/** The broker prints some numbers otherwise: 0 as 0.0. */
export function isSame(running: string, value: string): boolean {
  return running === value || (running !== "" && value !== "" && Number(running) === Number(value));
}

const runsWithinMs = 2_000;
const pollMs = 20;

/** A broker applies settings soon after the controller stored them. Values that it prints otherwise are not awaited. */
async function untilRunning(instance: Instance, session: Connection, changes: readonly SettingChange[]): Promise<void> {
  for (let waitedMs = 0; waitedMs < runsWithinMs; waitedMs += pollMs) {
    const running = await runningParameters(instance, session);
    if (changes.every(([name, value]) => value === null || isSame(running.get(name) ?? "", value))) return;
    await sleep(pollMs);
  }
}

function isInvalid(code: number): boolean {
  const invalidRequest = 42;
  return code === errorCodes.invalidConfig || code === invalidRequest;
}
