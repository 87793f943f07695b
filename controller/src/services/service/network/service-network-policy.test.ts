import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { managedServiceKind, type ManagedServiceObject } from "../managed-service.ts";
import { createServiceNetworkPolicy, servicePolicyRules } from "./service-network-policy.ts";

const service = (id: string, nodes: string[], allowedCidrs: string[]) =>
  runningService({ id }, { allowedCidrs, nodes: nodes.map(nodeOf) });
function machine(owner: string, address: string, hostId = "here", publicAddress = address): MachineObject {
  const created = runningMachine("m", { owner: { kind: "managed-service", id: owner }, hostId }, address);
  return { ...created, status: { ...created.status, publicAddress } };
}

const machines: Record<string, MachineObject> = {
  a: machine("one", "10.1.0.2"),
  b: machine("two", "10.1.0.3"),
  c: machine("two", "10.1.0.4"),
  near: machine("apart", "10.1.0.6"),
  far: machine("apart", "10.2.0.6", "there"),
  open: machine("open", "10.1.0.7", "here", "203.0.113.17"),
  peer: machine("open", "10.1.0.8", "here", "203.0.113.18"),
  current: machine("three", ""),
  taken: machine("somebody", "10.1.0.5"),
};

test.each([
  [
    "a service's port is open to its allow-list",
    service("one", ["a"], ["1.2.0.0/16"]),
    [["10.1.0.2", 5432, ["1.2.0.0/16"]]],
  ],
  [
    "the engine's port, too, is open to a process of the platform, by the private address",
    {
      ...service("open", ["open"], []),
      spec: {
        ...service("open", ["open"], []).spec,
        platformAccess: [{ role: "holdfast_auth_x", database: "defaultdb", from: ["10.0.0.1/32"] }],
      },
    },
    [
      ["10.1.0.7", 5432, []],
      ["203.0.113.17", 5432, []],
      ["10.1.0.7", 5432, ["10.0.0.1/32"]],
    ],
  ],
  [
    "a pooler's port is open to the same",
    {
      ...service("one", ["a"], ["1.2.0.0/16"]),
      spec: { ...service("one", ["a"], ["1.2.0.0/16"]).spec, pooler: { enabled: true, mode: "session" as const } },
    },
    [
      ["10.1.0.2", 5432, ["1.2.0.0/16"]],
      ["10.1.0.2", 5433, ["1.2.0.0/16"]],
    ],
  ],
  ["an empty list admits no client", service("one", ["a"], []), [["10.1.0.2", 5432, []]]],
  [
    "members of one service reach each other",
    service("two", ["b", "c"], ["9.0.0.0/8"]),
    [
      ["10.1.0.3", 5432, ["9.0.0.0/8"]],
      ["10.1.0.3", null, ["10.1.0.4/32"]],
      ["10.1.0.4", 5432, ["9.0.0.0/8"]],
      ["10.1.0.4", null, ["10.1.0.3/32"]],
    ],
  ],
  [
    "a member on another host has its rules there, and each reaches the other",
    service("apart", ["near", "far"], ["9.0.0.0/8"]),
    [
      ["10.1.0.6", 5432, ["9.0.0.0/8"]],
      ["10.1.0.6", null, ["10.2.0.6/32"]],
      ["10.2.0.6", null, ["10.1.0.6/32"]],
    ],
  ],
  [
    "clients reach both addresses of a machine, peers its private one",
    service("open", ["open", "peer"], ["9.0.0.0/8"]),
    [
      ["10.1.0.7", 5432, ["9.0.0.0/8"]],
      ["203.0.113.17", 5432, ["9.0.0.0/8"]],
      ["10.1.0.7", null, ["10.1.0.8/32"]],
      ["10.1.0.8", 5432, ["9.0.0.0/8"]],
      ["203.0.113.18", 5432, ["9.0.0.0/8"]],
      ["10.1.0.8", null, ["10.1.0.7/32"]],
    ],
  ],
  ["a machine without an address has no rule", service("three", ["current", "missing"], ["9.0.0.0/8"]), []],
  ["a machine of another owner is left alone", service("one", ["taken"], ["9.0.0.0/8"]), []],
])("%s", (_, input, expected) => {
  const rules = servicePolicyRules(input, "here", (id) => machines[id]);
  expect(rules.map(({ to, port, from }) => [to, port, from])).toEqual(expected);
});

describe("a change notifies the hosts whose rules it changes", () => {
  let scenario: TestStore;
  let notified: (readonly string[])[];
  let watch: { close(): void };
  beforeAll(async () => {
    scenario = await startTestStore();
    const unit = scenario.begin();
    for (const [id, object] of Object.entries({
      a: machine("s", "10.1.0.2"),
      b: machine("s", "10.2.0.2", "there"),
      c: machine("t", "10.3.0.2", "elsewhere"),
    })) {
      unit.create(machineKind, { ...object, metadata: { ...object.metadata, id } });
    }
    unit.create(managedServiceKind, service("s", ["a", "b"], ["9.0.0.0/8"]));
    unit.create(managedServiceKind, service("t", ["c"], []));
    await scenario.collections.untilRevision(await unit.commit(), 60_000);
    watch = createServiceNetworkPolicy(scenario.collections).subscribe((hostIds) =>
      notified.push([...(hostIds ?? ["all"])].toSorted()),
    );
  });
  afterAll(async () => {
    watch?.close();
    await scenario?.close();
  });

  test.each<[string, (spec: ManagedServiceObject["spec"]) => ManagedServiceObject["spec"], string[][]]>([
    ["an allow-list", (spec) => ({ ...spec, allowedCidrs: [] }), [["here", "there"]]],
    ["a pooler", (spec) => ({ ...spec, pooler: { enabled: true, mode: "session" } }), [["here", "there"]]],
    ["a tag", (spec) => ({ ...spec, tags: { a: "b" } }), []],
    ["a member that left", (spec) => ({ ...spec, nodes: spec.nodes.slice(0, 1) }), [["here", "there"]]],
  ])("%s", async (_, change, expected) => {
    const before = scenario.collections.services.get("s");
    if (before === undefined) throw new Error("no service");
    expect(
      await notificationsOf((unit) =>
        unit.update(managedServiceKind, before, { ...before.object, spec: change(before.object.spec) }),
      ),
    ).toEqual(expected);
  });

  test.each<[string, (object: MachineObject) => MachineObject, string[][]]>([
    ["an address", (object) => ({ ...object, status: { ...object.status, address: "10.3.0.3" } }), [["elsewhere"]]],
    ["a certificate", (object) => ({ ...object, status: { ...object.status, reason: "renewed" } }), []],
    ["another owner", (object) => ({ ...object, spec: { ...object.spec, owner: null } }), [["elsewhere"]]],
  ])("of a machine, %s", async (_, change, expected) => {
    const before = scenario.collections.machines.get("c");
    if (before === undefined) throw new Error("no machine");
    expect(await notificationsOf((unit) => unit.update(machineKind, before, change(before.object)))).toEqual(expected);
  });

  async function notificationsOf(
    write: (unit: ReturnType<TestStore["begin"]>) => void,
  ): Promise<(readonly string[])[]> {
    notified = [];
    const unit = scenario.begin();
    write(unit);
    await scenario.collections.untilRevision(await unit.commit(), 60_000);
    return notified;
  }
});
