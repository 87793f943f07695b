import { create } from "@bufbuild/protobuf";
import { kafka } from "@holdfast/common/engine-catalog/kafka.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { EngineUserSchema, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { kafkaClient, kafkaVerifier } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import { createKafkaDriver } from "./driver.ts";
import { isSame, runningParameters } from "./parameters.ts";
import { offsetCommit } from "./protocol/apis.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");
const nodeId = "orders-1.local.holdfast.test";
const timeoutMs = 600_000;
const user = { user: "app_user", password: "secret" };

describe.skipIf(skip !== undefined)("parameters of kafka at their limits", { timeout: timeoutMs }, () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createKafkaDriver(deps), "kafka", "3.9", {
      users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: kafkaVerifier("secret") })],
      address: "127.9.46.3",
      nodeId,
      peers: create(PeersSchema, {
        clusterId: "kafka",
        secret: "a planted secret",
        members: [{ nodeId, number: 1, hostname: nodeId, address: "127.9.46.3" }],
      }),
    });
    await machine.bringUp();
    await expectWorking("the defaults");
  }, timeoutMs);
  afterAll(() => machine?.remove());

  const parametersWhere = (needsRestart: boolean) =>
    kafka.parameters.filter(
      (each) => each.needsRestart === needsRestart && !kafka.nodeBoundParameters?.includes(each.name),
    );

  /** Enum members, or the least, the least that has an effect, and the greatest value on this plan. */
  function extremesOf({ name, values, minimum, minimumEnabled, maximum }: Parameter): readonly string[] {
    if (values.length > 0) return values;
    const enabled = minimumEnabled ?? (minimum !== null && minimum <= 0 ? minimum + 1 : null);
    const greatest = kafka.sizing.maximumOf?.(name, new Map(), planOf(machine.instance.spec))?.value ?? maximum;
    return [minimum, enabled, greatest].flatMap((number) => (number === null ? [] : [String(number)]));
  }

  /** The platform's probe reads its record back; a client's write is acknowledged. */
  async function expectWorking(under: string): Promise<void> {
    const { driver, instance, signal } = machine;
    const { checks } = await driver.observe(instance, signal);
    const failing = checks.filter(({ status }) => status !== "healthy").map(({ name, reason }) => `${name}: ${reason}`);
    expect({ under, failing }).toEqual({ under, failing: [] });
    const client = await kafkaClient(machine, user);
    try {
      await client.write("key", "value");
    } finally {
      await client.close();
    }
    await commitOffset();
  }

  /** A commit needs no member of the group. */
  async function commitOffset(): Promise<void> {
    const topics = [{ name: "kv", partitions: [{ index: 0, offset: 1, leaderEpoch: -1, metadata: null }] }];
    await withSession(machine.instance, machine.signal, async (session) => {
      const request = { group: "billing", generation: -1, memberId: "", instanceId: null, topics };
      for (const { partitions } of (await session.call(offsetCommit, request)).topics)
        for (const result of partitions) requireSuccess("OffsetCommit", result);
    });
  }

  const running = () =>
    withSession(machine.instance, machine.signal, (session) => runningParameters(machine.instance, session));

  async function apply(parameters: Record<string, string>): Promise<void> {
    machine.change({ parameters });
    await machine.writeConfig();
    await machine.driver.reload(machine.instance, machine.signal);
  }

  it("are in effect as they are shown, each by default", async () => {
    const [offered, found] = [effectiveParameters(machine.instance), await running()];
    expect([...offered.keys()].toSorted()).toEqual(kafka.parameters.map(({ name }) => name).toSorted());
    const others = [...offered].filter(([name, value]) => !isSame(found.get(name) ?? "", value));
    expect(others.map(([name, value]) => `${name}: ${value} is shown, ${found.get(name)} is in effect`)).toEqual([]);
  });

  it("leave a running broker healthy and changeable, one by one", async () => {
    const faults: string[] = [];
    for (const parameter of parametersWhere(false))
      for (const value of extremesOf(parameter)) {
        const { name } = parameter;
        const under = `${name} = ${value}`;
        try {
          await apply({ [name]: value });
          expect(isSame((await running()).get(name) ?? "", value), under).toBe(true);
          await expectWorking(under);
        } catch (error) {
          faults.push(`${under}: ${String(error)}`);
        }
        await apply({}).catch((error: unknown) => faults.push(`the default after ${under}: ${String(error)}`));
      }
    expect(faults).toEqual([]);
    await expectWorking("the defaults again");
  });

  it.each(["least", "greatest"] as const)("let a broker start and serve, all at the %s", async (end) => {
    const at = (parameter: Parameter) => extremesOf(parameter).at(end === "least" ? 0 : -1) ?? "";
    await machine.stop();
    machine.change({ parameters: Object.fromEntries(parametersWhere(true).map((each) => [each.name, at(each)])) });
    await machine.bringUp();
    await expectWorking(`all at the ${end}`);
  });
});
