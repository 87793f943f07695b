import { expect } from "vitest";
import type { ServiceNode } from "@holdfast/sdk/index.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import type { CutDirection } from "@holdfast/testing/network/network-cuts.ts";
import type { SlowNetwork } from "@holdfast/testing/network/slow-network.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { cutPower } from "../host-faults.ts";
import type { MemberFixture } from "./member-fixture.ts";
import type { MemberService } from "./member-service.ts";

/** Duration of a cut: more than any primary lease, and than a primary waits for a silent replica. */
const cutMs = 20_000;

const isPrimaryUnreachable = ({ nodes, primary_node_id: named }: ServiceJson) =>
  nodes.find(({ id }) => id === named)?.status === "Unreachable";
const isUnhealthy = (check: string) => (service: ServiceJson) =>
  service.health.checks.some(({ name, status }) => name === check && status !== "healthy");

/** The primary loses its controllers in one direction or both, and remains the primary. */
export async function loseControllers(
  fixture: MemberFixture,
  service: MemberService,
  way: CutDirection,
): Promise<void> {
  await service.remainsPrimary(
    `no controllers, ${way}`,
    fixture.cutOff("controllers", way),
    cutMs,
    isPrimaryUnreachable,
  );
}

/** The primary loses its replicas in one direction or both, and remains the primary. */
export async function loseReplicas(fixture: MemberFixture, service: MemberService, way: CutDirection): Promise<void> {
  await service.remainsPrimary(
    `no replicas, ${way}`,
    fixture.cutOff("replicas", way),
    cutMs,
    isUnhealthy("replication"),
  );
}

export async function loseBoth(fixture: MemberFixture, service: MemberService, way: CutDirection): Promise<void> {
  await service.failsOver(`neither, ${way}`, fixture.cutOff("all", way));
}

/** Slows the network: delay causes no failover; a loss of two packets of five may cause one. */
export async function slowDown(fixture: MemberFixture, service: MemberService, network: SlowNetwork): Promise<void> {
  await service.remainsPrimary(
    "500 ms there and back",
    fixture.slowDown(network, { delayMs: 250, lossPct: 0 }),
    40_000,
  );
  await service.survives("40% loss", fixture.slowDown(network, { delayMs: 0, lossPct: 40 }), 60_000);
}

export async function hangDisk(fixture: MemberFixture, service: MemberService): Promise<void> {
  await service.failsOver("hung disk", fixture.hangDisk);
}

/** Fills a replica's disk: the primary continues, and the replica follows again once space is free. */
export async function fillReplica(fixture: MemberFixture, service: MemberService): Promise<void> {
  await service.remainsPrimary("full disk of a replica", fixture.fillReplicaDisk, cutMs, isUnhealthy("storage"));
}

export async function loseMachine(fixture: MemberFixture, service: MemberService): Promise<void> {
  await service.failsOver("machine frozen", fixture.freezeMachine);
  await service.survives("machine stopped", fixture.stopMachine, 0);
}

/** Adds a replica, which becomes the primary by request; removes another one. */
export async function changeNodes({ platform, services }: MemberFixture, service: MemberService): Promise<void> {
  const path = `/managed-services/${service.id}/nodes`;
  const added = expectStatus(await platform.rest.post<ServiceNode>(path, { role: "replica" }), 202).json;
  await services.settled(service.id, "Running");
  await service.untilHealthy();
  const { term, replicas } = await service.roles();
  expectStatus(await platform.rest.post(`${path}/${added.id}/failover`), 202);
  await services.settled(service.id, "Running");
  await service.untilHealthy();
  expect(await service.roles()).toMatchObject({ term: term + 1, primary: { id: added.id } });
  const leaving = replicas.find(({ id }) => id !== added.id)?.id ?? "";
  expectStatus(await platform.rest.delete(`${path}/${leaving}`), 202);
  await services.settled(service.id, "Running");
}

/** All hosts lose power at the same time. */
export async function rebootHosts(fixture: MemberFixture, all: readonly MemberService[]): Promise<void> {
  const roles = await Promise.all(all.map((service) => service.roles()));
  const machineIds = roles.flatMap(({ primary, replicas }) => [primary.id, ...replicas.map(({ id }) => id)]);
  const at = await cutPower(fixture, machineIds);
  await Promise.all(all.map((service) => service.untilHealthy()));
  fixture.note(`hosts rebooted: all recovered after ${Date.now() - at} ms`);
}
