import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { incusMissing } from "@holdfast/testing/machines/incus-machines.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import { type SlowNetwork, slowNetwork } from "@holdfast/testing/network/slow-network.ts";
import { type FaultFixture, openFaultFixture, type WrittenService } from "./fault-fixture.ts";
import { changeController, fillPool, killDaemonAtWork, moveController, rebootHosts } from "./host-faults.ts";
import { exhaustMemory, fillDisk, killMachine, pauseMachine } from "./machine-faults.ts";
import { createMemberFixture, type MemberFixture } from "./members/member-fixture.ts";
import type { MemberService } from "./members/member-service.ts";
import { cutNetwork, slowDown } from "./network-faults.ts";

const missing = await incusMissing();
const why = missing === undefined ? "" : ` (skipped: ${missing})`;
const slow = missing === undefined ? await slowNetwork() : missing;
const whyNotSlow = typeof slow === "string" ? ` (skipped: ${slow})` : "";
/** `npm run faults -- --incus` sets pauses and cuts of five minutes. */
const pauseMs = Number(process.env["HOLDFAST_TEST_PAUSE_S"] ?? 30) * 1_000;
const cutMs = Number(process.env["HOLDFAST_TEST_PAUSE_S"] ?? 0) * 1_000;

describe.skipIf(missing !== undefined)(`services on machines of Incus${why}`, () => {
  let fixture: FaultFixture;
  let first: WrittenService;
  let second: WrittenService;
  let third: WrittenService;
  let cache: WrittenService;
  let members: MemberFixture;
  let pair: MemberService;

  beforeAll(async () => {
    fixture = await openFaultFixture();
    first = await fixture.write("first", "postgresql");
    [second, third, cache] = await Promise.all([
      fixture.write("second", "postgresql"),
      fixture.write("third", "postgresql"),
      fixture.write("cache", "valkey"),
    ]);
    members = createMemberFixture(fixture);
    pair = await members.open("pair", { node_count: 2, replication_mode: "sync" });
  });
  afterAll(async () => {
    fixture?.figures.print();
    await members?.close();
    await fixture?.remove();
  });

  // Faults of different machines are independent, so they run concurrently.
  describe.concurrent("each with its own faults", () => {
    // Faults of one service run one after another.
    const timeout = pauseMs + cutMs + 600_000;

    it(
      "recover without a request when a machine is killed",
      () => first.exclusively(() => killMachine(fixture, first)),
      timeout,
    );
    it(
      "report it when the network to a machine is cut",
      () => second.exclusively(() => cutNetwork(fixture, second, "both", cutMs)),
      timeout,
    );
    it.skipIf(whyNotSlow !== "")(
      `work, and are reported to, over a slow network that loses packets${whyNotSlow}`,
      () => third.exclusively(() => slowDown(fixture, third, slow as SlowNetwork)),
      timeout,
    );
    it("report it when the disk of a cache is full", () => cache.exclusively(() => fillDisk(fixture, cache)), timeout);
    it(
      "report it while a machine is paused, and continue without a restart",
      () => first.exclusively(() => pauseMachine(fixture, first, pauseMs)),
      timeout,
    );
    it(
      "report it when nothing from a machine arrives any more",
      () => second.exclusively(() => cutNetwork(fixture, second, "from", 0)),
      timeout,
    );
    it(
      "report it when a machine receives nothing any more",
      () => second.exclusively(() => cutNetwork(fixture, second, "to", 0)),
      timeout,
    );
    it("report it when a disk is full", () => third.exclusively(() => fillDisk(fixture, third)), timeout);
    it(
      "report it when the kernel killed a process for its memory",
      () => third.exclusively(() => exhaustMemory(fixture, third)),
      timeout,
    );
    it(
      "of two nodes continue without controllers or replicas, and change the primary without both",
      async () => {
        await pair.remainsPrimary("no controllers", members.cutOff("controllers", "both"), 8_000);
        await pair.remainsPrimary("no replica", members.cutOff("replicas", "both"), 5_000);
        await pair.failsOver("neither", members.cutOff("all", "both"));
        await pair.settle();
        await fixture.services.delete(pair.id);
      },
      timeout,
    );
    it(
      "retain the data of a cache when its machine is killed",
      () => cache.exclusively(() => killMachine(fixture, cache)),
      timeout,
    );
  });

  // Faults of the host affect all of them.
  it("are created, removed and not affected while the daemon of their host is killed", () =>
    killDaemonAtWork(fixture, first));

  it("are rejected with the reason when their host is full, and created when it has space", () =>
    fillPool(fixture, first));

  it("reconnect from one controller to another and back", () =>
    changeController(fixture, [first, second, third, cache]));

  it("find the controller at another address", () => moveController(fixture, [first, second, third, cache]));

  it("recover by themselves after a power cut of all hosts", () => rebootHosts(fixture, [first, second, third, cache]));

  it("have lost no acknowledged row, and no machine without an owner remains", async () => {
    await fixture.settle();
    expect(crashesOf(fixture.platform.directory)).toEqual([]);
    await asOperator(fixture.platform, FleetService, async (fleet) => {
      expect((await fleet.sweepOrphans({ dryRun: true })).orphans).toEqual([]);
    });
  });
});
