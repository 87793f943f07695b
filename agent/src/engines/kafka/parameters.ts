import { setTimeout as sleep } from "node:timers/promises";
import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import { membersOf } from "../members.ts";
import { ownNumber } from "./layout.ts";
import { describeConfigs, incrementalAlterConfigs } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, KafkaRefusal, requireSuccess } from "./protocol/protocol-error.ts";

/** ConfigResource.Type.TOPIC and BROKER, and AlterConfigOp.OpType.SET. */
const [topicType, brokerType] = [2, 4];
const set = 0;

export const minInSync = "min.insync.replicas";
const defaultReplicationFactor = "default.replication.factor";
const transactionsTopic = "__transaction_state";

/** Parameters of the broker. By default, writes with acks=all need two replicas once the service has three members. */
export function brokerParameters(instance: Pick<Instance, "spec">): Map<string, string> {
  const parameters = effectiveParameters(instance);
  if (defaultMinInSyncIsTwo(instance)) parameters.set(minInSync, "2");
  return parameters;
}

/** True if min.insync.replicas is 2 by default: at least three members, and no value set by the user. */
export function defaultMinInSyncIsTwo({ spec }: Pick<Instance, "spec">): boolean {
  return lookUp(spec.parameters, minInSync) === undefined && membersOf(spec).length >= 3;
}

/** Values of the catalog's parameters that the broker runs with. */
export async function runningParameters(instance: Instance, session: Connection): Promise<Map<string, string>> {
  return describeBroker(session, ownNumber(instance), [...brokerParameters(instance).keys()]);
}

/** Number of replicas of topics that the session's broker creates. */
export async function runningReplicationFactor(session: Connection, number: number): Promise<number> {
  const found = await describeBroker(session, number, [defaultReplicationFactor]);
  return Number(found.get(defaultReplicationFactor));
}

/** Only the broker itself describes its settings. */
async function describeBroker(session: Connection, number: number, keys: string[]): Promise<Map<string, string>> {
  const answer = await session.call(describeConfigs, {
    resources: [{ type: brokerType, name: String(number), keys }],
    includeSynonyms: false,
    includeDocumentation: false,
  });
  const [found] = answer.results;
  if (found === undefined) throw new Error("the broker did not describe its settings");
  requireSuccess("DescribeConfigs", found);
  return new Map(found.configs.flatMap(({ name, value }) => (value === null ? [] : [[name, value]])));
}

/** Has the session's own broker require two in-sync replicas. Another broker would refuse the call. */
export function raiseMinInSync(session: Connection, number: number): Promise<void> {
  return alterConfigs(session, { type: brokerType, name: String(number) }, [[minInSync, "2"]]);
}

/** Has the topic of transactions, whose setting is its own, require two. It exists once there was a transaction. */
export async function raiseMinInSyncOfTransactions(session: Connection): Promise<void> {
  try {
    await alterConfigs(session, { type: topicType, name: transactionsTopic }, [[minInSync, "2"]]);
  } catch (error) {
    if (!(error instanceof KafkaRefusal) || error.code !== errorCodes.unknownTopicOrPartition) throw error;
  }
}

/** Sets settings of this broker, which it stores with the cluster's metadata: they win over its file. */
async function alterBroker(
  instance: Instance,
  session: Connection,
  settings: readonly (readonly [name: string, value: string])[],
): Promise<void> {
  if (settings.length > 0)
    await alterConfigs(session, { type: brokerType, name: String(ownNumber(instance)) }, settings);
}

async function alterConfigs(
  session: Connection,
  resource: { readonly type: number; readonly name: string },
  settings: readonly (readonly [name: string, value: string])[],
): Promise<void> {
  const configs = settings.map(([name, value]) => ({ name, operation: set, value }));
  const request = { resources: [{ ...resource, configs }], validateOnly: false };
  const { results } = await session.call(incrementalAlterConfigs, request);
  for (const result of results) requireSuccess("IncrementalAlterConfigs", result);
}

/**
 * Applies live parameters to the running broker. Throws EngineRefused for a value that it rejects. In a cluster that
 * has grown, min.insync.replicas becomes 2 once each partition has a second replica (`raiseMinInSync`): until then
 * writes with acks=all would be refused.
 */
export async function applyParameters(instance: Instance, session: Connection): Promise<void> {
  const running = await runningParameters(instance, session);
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  const changed = [...brokerParameters(instance)].filter(
    ([name, value]) =>
      catalog.get(name)?.needsRestart === false &&
      running.get(name) !== value &&
      !(name === minInSync && defaultMinInSyncIsTwo(instance) && running.get(name) === "1"),
  );
  if (changed.length === 0) return;
  try {
    await alterBroker(instance, session, changed);
    await untilRunning(instance, session, changed);
  } catch (error) {
    if (error instanceof KafkaRefusal && isInvalid(error.code))
      throw new EngineRefused(error.message, { cause: error });
    throw error;
  }
}

const runsWithinMs = 2_000;
const pollMs = 20;

/** A broker applies settings soon after the controller stored them. Values that it prints otherwise are not awaited. */
async function untilRunning(
  instance: Instance,
  session: Connection,
  settings: readonly (readonly [name: string, value: string])[],
): Promise<void> {
  for (let waitedMs = 0; waitedMs < runsWithinMs; waitedMs += pollMs) {
    const running = await runningParameters(instance, session);
    if (settings.every(([name, value]) => running.get(name) === value)) return;
    await sleep(pollMs);
  }
}

function isInvalid(code: number): boolean {
  const invalidRequest = 42;
  return code === errorCodes.invalidConfig || code === invalidRequest;
}
