import { expect, test } from "vitest";
import { runningMachine } from "../../../test/support/machine-object.ts";
import { nodeOf, runningService } from "../../../test/support/service-object.ts";
import type { MachineObject } from "../machine/machine.ts";
import { controllerRulesOf, reachRulesOf } from "./reach-rules.ts";

const service = (id: string, nodes: string[], allowedCidrs: string[]) =>
  runningService({ id }, { allowedCidrs, nodes: nodes.map(nodeOf) });
function machine(owner: string, address: string, hostId = "here", publicAddress = address): MachineObject {
  const made = runningMachine("m", { owner: { kind: "managed-service", id: owner }, hostId }, address);
  return { ...made, status: { ...made.status, publicAddress } };
}

const machines: Record<string, MachineObject> = {
  a: machine("one", "10.1.0.2"),
  b: machine("two", "10.1.0.3"),
  c: machine("two", "10.1.0.4"),
  near: machine("apart", "10.1.0.6"),
  far: machine("apart", "10.2.0.6", "there"),
  known: machine("open", "10.1.0.7", "here", "203.0.113.17"),
  peer: machine("open", "10.1.0.8", "here", "203.0.113.18"),
  fresh: machine("three", ""),
  taken: machine("somebody", "10.1.0.5"),
};

test.each([
  [
    "a service's port is open to its allow-list",
    service("one", ["a"], ["1.2.0.0/16"]),
    [["10.1.0.2", 5432, ["1.2.0.0/16"]]],
  ],
  ["nobody is let in by an empty list", service("one", ["a"], []), [["10.1.0.2", 5432, []]]],
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
    service("open", ["known", "peer"], ["9.0.0.0/8"]),
    [
      ["10.1.0.7", 5432, ["9.0.0.0/8"]],
      ["203.0.113.17", 5432, ["9.0.0.0/8"]],
      ["10.1.0.7", null, ["10.1.0.8/32"]],
      ["10.1.0.8", 5432, ["9.0.0.0/8"]],
      ["203.0.113.18", 5432, ["9.0.0.0/8"]],
      ["10.1.0.8", null, ["10.1.0.7/32"]],
    ],
  ],
  ["a machine without an address has no rule", service("three", ["fresh", "missing"], ["9.0.0.0/8"]), []],
  ["a machine of somebody else is left alone", service("one", ["taken"], ["9.0.0.0/8"]), []],
])("%s", (_, given, expected) => {
  const rules = reachRulesOf([given], "here", (id) => machines[id]);
  expect(rules.map(({ to, port, from }) => [to, port, from])).toEqual(expected);
});

test("machines may call every controller that listens at an address, also one that drains", () => {
  const member = (id: string, address: string, draining = false) => ({ id, address, startedAt: 0, draining });
  const members = [
    member("one", "10.1.0.1:8444"),
    member("two", "[2001:db8::2]:9000", true),
    member("named", "controllers.example:8444"),
    member("starting", ""),
  ];
  expect(controllerRulesOf(members)).toEqual([
    { owner: { kind: "controller", id: "one" }, to: "10.1.0.1", port: 8444, from: ["0.0.0.0/0"] },
    { owner: { kind: "controller", id: "two" }, to: "2001:db8::2", port: 9000, from: ["::/0"] },
  ]);
});
