import { expect } from "vitest";
import type { ServiceNode } from "../../../sdk/src/index.ts";
import type { ServiceJson } from "../../support/api/service-json.ts";
import type { CutDirection } from "../../support/network/network-cuts.ts";
import type { SlowNetwork } from "../../support/network/slow-network.ts";
import { expectStatus } from "../../support/platform/services.ts";
import { cutPower } from "../host-faults.ts";
import type { MemberGround } from "./member-ground.ts";
import type { MemberService } from "./member-service.ts";

/** Longer than any right, and than what a primary waits for a replica that is silent. */
const cutMs = 20_000;

const isPrimaryUnreachable = ({ nodes, primary_node_id: named }: ServiceJson) =>
  nodes.find(({ id }) => id === named)?.status === "Unreachable";
const isIll = (check: string) => (service: ServiceJson) =>
  service.health.checks.some(({ name, status }) => name === check && status !== "healthy");

/** What comes of a primary that does not hear, or is not heard by, its controllers. */
export async function loseControllers(ground: MemberGround, its: MemberService, way: CutDirection): Promise<void> {
  await its.stays(`no controllers, ${way}`, ground.cutOff("controllers", way), cutMs, isPrimaryUnreachable);
}

/** The same of its replicas. */
export async function loseReplicas(ground: MemberGround, its: MemberService, way: CutDirection): Promise<void> {
  await its.stays(`no replicas, ${way}`, ground.cutOff("replicas", way), cutMs, isIll("replication"));
}

export async function loseBoth(ground: MemberGround, its: MemberService, way: CutDirection): Promise<void> {
  await its.failsOver(`neither, ${way}`, ground.cutOff("all", way));
}

/** A slow network is no reason for a failover; one that loses two packets of five may be. */
export async function slowDown(ground: MemberGround, its: MemberService, network: SlowNetwork): Promise<void> {
  await its.stays("500 ms there and back", ground.slowDown(network, { delayMs: 250, lossPct: 0 }), 40_000);
  await its.outlives("40% loss", ground.slowDown(network, { delayMs: 0, lossPct: 40 }), 60_000);
}

export async function hangDisk(ground: MemberGround, its: MemberService): Promise<void> {
  await its.failsOver("hung disk", ground.hangDisk);
}

/** The primary goes on, and the replica follows again by itself once there is room. */
export async function fillReplica(ground: MemberGround, its: MemberService): Promise<void> {
  await its.stays("full disk of a replica", ground.fillReplicaDisk, cutMs, isIll("storage"));
}

export async function loseMachine(ground: MemberGround, its: MemberService): Promise<void> {
  await its.failsOver("machine frozen", ground.freezeMachine);
  await its.outlives("machine stopped", ground.stopMachine, 0);
}

/** A replica is added and becomes the primary by request; another one is removed. */
export async function changeNodes({ platform, services }: MemberGround, its: MemberService): Promise<void> {
  const path = `/managed-services/${its.id}/nodes`;
  const added = expectStatus(await platform.rest.post<ServiceNode>(path, { role: "replica" }), 202).json;
  await services.settled(its.id, "Running");
  await its.untilWell();
  const { term, replicas } = await its.roles();
  expectStatus(await platform.rest.post(`${path}/${added.id}/failover`), 202);
  await services.settled(its.id, "Running");
  await its.untilWell();
  expect(await its.roles()).toMatchObject({ term: term + 1, primary: { id: added.id } });
  const leaving = replicas.find(({ id }) => id !== added.id)?.id ?? "";
  expectStatus(await platform.rest.delete(`${path}/${leaving}`), 202);
  await services.settled(its.id, "Running");
}

/** All hosts lose their power at once. */
export async function rebootHosts(ground: MemberGround, all: readonly MemberService[]): Promise<void> {
  const known = await Promise.all(all.map((its) => its.roles()));
  const machineIds = known.flatMap(({ primary, replicas }) => [primary.id, ...replicas.map(({ id }) => id)]);
  const at = await cutPower(ground, machineIds);
  await Promise.all(all.map((its) => its.untilWell()));
  ground.note(`hosts rebooted: all well after ${Date.now() - at} ms`);
}
