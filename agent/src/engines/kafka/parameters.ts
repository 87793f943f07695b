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

/** ConfigResource.Type.BROKER and AlterConfigOp.OpType.SET. */
const brokerType = 4;
const set = 0;

const minInSync = "min.insync.replicas";

/** Parameters of the broker. By default, writes with acks=all need two replicas once the service has three members. */
export function brokerParameters(instance: Pick<Instance, "spec">): Map<string, string> {
  const parameters = effectiveParameters(instance);
  const isChosen = lookUp(instance.spec.parameters, minInSync) !== undefined;
  if (!isChosen && membersOf(instance.spec).length >= 3) parameters.set(minInSync, "2");
  return parameters;
}

/** Values of the catalog's parameters that the broker runs with. */
export async function runningParameters(instance: Instance, session: Connection): Promise<Map<string, string>> {
  const keys = [...brokerParameters(instance).keys()];
  const answer = await session.call(describeConfigs, {
    resources: [{ type: brokerType, name: String(ownNumber(instance)), keys }],
    includeSynonyms: false,
    includeDocumentation: false,
  });
  const [found] = answer.results;
  if (found === undefined) throw new Error("the broker did not describe its settings");
  requireSuccess("DescribeConfigs", found);
  return new Map(found.configs.flatMap(({ name, value }) => (value === null ? [] : [[name, value]])));
}

/** Sets settings of this broker, which it stores with the cluster's metadata: they win over its file. */
async function alterBroker(
  instance: Instance,
  session: Connection,
  settings: readonly (readonly [name: string, value: string])[],
): Promise<void> {
  if (settings.length === 0) return;
  const configs = settings.map(([name, value]) => ({ name, operation: set, value }));
  const { results } = await session.call(incrementalAlterConfigs, {
    resources: [{ type: brokerType, name: String(ownNumber(instance)), configs }],
    validateOnly: false,
  });
  for (const result of results) requireSuccess("IncrementalAlterConfigs", result);
}

/** Applies live parameters to the running broker. Throws EngineRefused for a value that it rejects. */
export async function applyParameters(instance: Instance, session: Connection): Promise<void> {
  const running = await runningParameters(instance, session);
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  const changed = [...brokerParameters(instance)].filter(
    ([name, value]) => catalog.get(name)?.needsRestart === false && running.get(name) !== value,
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
