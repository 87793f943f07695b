import type { RegisteredController } from "#kernel/runtime/controller-registry.ts";
import { expect, test } from "vitest";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import type { MachineObject } from "../machine/machine.ts";
import { createOutdatedCertificates, type OutdatedCertificatesDeps } from "./outdated-certificates.ts";
import { partial } from "@holdfast/testing/partial.ts";

const generation = 7;
const issued = (authorityGeneration: number, previousSerial = "") =>
  ({ certificate: { authorityGeneration, previousSerial } }) as never;
const machine = (id: string, status: object) =>
  ({ metadata: { id }, spec: {}, status: { state: "running", ...status } }) as MachineObject;

function behind(
  members: readonly RegisteredController[],
  machines: readonly MachineObject[] = [],
  hosts = [readyHost("a")],
) {
  const collection = <T>(objects: readonly T[]) => ({ values: () => objects.map((object) => ({ object })) });
  const deps = partial<OutdatedCertificatesDeps>({
    machines: collection(machines),
    hosts: collection(hosts),
    fleet: { observation: () => undefined },
    authority: { record: { generation } },
    controllerRegistry: { controllers: () => members },
  });
  return createOutdatedCertificates(deps).outdated();
}

const member = (id: string, reported: Partial<RegisteredController> = {}) =>
  ({ id, ...reported }) as RegisteredController;

test("a controller whose DNS server lacks the new trust bundle is outdated", () => {
  const members = [member("c-1", { authorityGeneration: generation }), member("c-2", { authorityGeneration: 6 })];
  expect(behind(members)).toEqual(["controller/c-2"]);
  // A controller without data planes reports no generation.
  expect(behind([member("c-3")])).toEqual([]);
});

test("machines and hosts are outdated until they use new certificates, stopped machines are not", () => {
  const machines = [
    machine("new", issued(generation)),
    machine("old", issued(6)),
    machine("unproven", issued(generation, "before")),
    machine("off", { ...(issued(6) as object), state: "stopped" }),
  ];
  const hosts = [readyHost("a", {}, {}, issued(6)), readyHost("b", {}, {}, issued(generation))];
  expect(behind([], machines, hosts)).toEqual(["host/a", "old", "unproven"]);
});
