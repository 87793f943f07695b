import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { incusMissing } from "../support/machines/incus-machines.ts";
import { asOperator } from "../support/platform/organizations.ts";
import { crashesOf } from "../support/platform/platform-logs.ts";
import { type SlowNetwork, slowNetwork } from "../support/network/slow-network.ts";
import { type FaultGround, openFaultGround, type WrittenService } from "./fault-ground.ts";
import { changeController, fillPool, killDaemonAtWork, moveController, rebootHosts } from "./host-faults.ts";
import { exhaustMemory, fillDisk, killMachine, pauseMachine } from "./machine-faults.ts";
import { createMemberGround, type MemberGround } from "./members/member-ground.ts";
import type { MemberService } from "./members/member-service.ts";
import { cutNetwork, slowDown } from "./network-faults.ts";

const missing = await incusMissing();
const why = missing === undefined ? "" : ` (skipped: ${missing})`;
const slow = missing === undefined ? await slowNetwork() : missing;
const whyNotSlow = typeof slow === "string" ? ` (skipped: ${slow})` : "";
/** With `npm run faults -- --incus` a pause and a cut last for five minutes. */
const pauseMs = Number(process.env["HOLDFAST_TEST_PAUSE_S"] ?? 30) * 1_000;
const cutMs = Number(process.env["HOLDFAST_TEST_PAUSE_S"] ?? 0) * 1_000;

describe.skipIf(missing !== undefined)(`services on machines of Incus${why}`, () => {
  let ground: FaultGround;
  let first: WrittenService;
  let second: WrittenService;
  let third: WrittenService;
  let cache: WrittenService;
  let members: MemberGround;
  let pair: MemberService;

  beforeAll(async () => {
    ground = await openFaultGround();
    first = await ground.write("first", "postgresql");
    [second, third, cache] = await Promise.all([
      ground.write("second", "postgresql"),
      ground.write("third", "postgresql"),
      ground.write("cache", "valkey"),
    ]);
    members = createMemberGround(ground);
    pair = await members.open("pair", { node_count: 2, replication_mode: "sync" });
  });
  afterAll(async () => {
    ground?.figures.print();
    await members?.close();
    await ground?.remove();
  });

  // Machines do not notice one another's faults: those of different ones happen at the same time.
  describe.concurrent("each with faults of its own", () => {
    // What happens to one service waits for what happened to it before.
    const timeout = pauseMs + cutMs + 600_000;

    it(
      "come back by themselves when a machine is killed",
      () => first.alone(() => killMachine(ground, first)),
      timeout,
    );
    it(
      "say so when the network to a machine is cut",
      () => second.alone(() => cutNetwork(ground, second, "both", cutMs)),
      timeout,
    );
    it.skipIf(whyNotSlow !== "")(
      `work, and are said to, over a slow network that loses packets${whyNotSlow}`,
      () => third.alone(() => slowDown(ground, third, slow as SlowNetwork)),
      timeout,
    );
    it("say so when the disk of a cache is full", () => cache.alone(() => fillDisk(ground, cache)), timeout);
    it(
      "say so while a machine is paused, and go on without a restart",
      () => first.alone(() => pauseMachine(ground, first, pauseMs)),
      timeout,
    );
    it(
      "say so when a machine is not heard any more",
      () => second.alone(() => cutNetwork(ground, second, "from", 0)),
      timeout,
    );
    it(
      "say so when a machine does not hear any more",
      () => second.alone(() => cutNetwork(ground, second, "to", 0)),
      timeout,
    );
    it("say so when a disk is full", () => third.alone(() => fillDisk(ground, third)), timeout);
    it(
      "say so when the kernel ended what took too much memory",
      () => third.alone(() => exhaustMemory(ground, third)),
      timeout,
    );
    it(
      "of two nodes go on without controllers, and without replicas, and change their primary without both",
      async () => {
        await pair.stays("no controllers", members.cutOff("controllers", "both"), 8_000);
        await pair.stays("no replica", members.cutOff("replicas", "both"), 5_000);
        await pair.failsOver("neither", members.cutOff("all", "both"));
        await pair.settle();
        await ground.services.delete(pair.id);
      },
      timeout,
    );
    it(
      "keep what a cache has when its machine is killed",
      () => cache.alone(() => killMachine(ground, cache)),
      timeout,
    );
  });

  // What is the host's, happens to all of them.
  it("are made, removed and left alone while the daemon of their host is killed", () =>
    killDaemonAtWork(ground, first));

  it("are refused with the reason when their host has no room, and made when it has", () => fillPool(ground, first));

  it("follow from one controller to another and back", () => changeController(ground, [first, second, third, cache]));

  it("find the controller at another address", () => moveController(ground, [first, second, third, cache]));

  it("come back by themselves when all hosts were without power", () =>
    rebootHosts(ground, [first, second, third, cache]));

  it("have lost nothing that was acknowledged, and nobody's machine is left", async () => {
    await ground.settle();
    expect(crashesOf(ground.platform.directory)).toEqual([]);
    await asOperator(ground.platform, FleetService, async (fleet) => {
      expect((await fleet.sweepOrphans({ dryRun: true })).orphans).toEqual([]);
    });
  });
});
