import { timestampMs } from "@bufbuild/protobuf/wkt";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { ControlService, FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { FailoverService } from "@holdfast/proto/holdfast/admin/v1/failover_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { cutsUnavailable } from "@holdfast/testing/network/uid-network-cuts.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { cutMember } from "./replication/cut-member.ts";
import { finalCases, createFailoverUnderTest } from "./replication/failover-under-test.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";

const why = cutsUnavailable === undefined ? "" : ` (skipped: it takes ${cutsUnavailable})`;

/** Failovers with additional faults; replication.test.ts has the cases in which only the primary fails. */
describe("a PostgreSQL whose primary fails", () => {
  const fixture = createReplicationUnderTest();
  const failover = createFailoverUnderTest(fixture);
  const { nodeWriters } = failover;
  const { roles, untilReplicaCounts: untilCandidate, failsOver, pauseMachine, pauseEngine } = failover.failures;
  beforeAll(async () => {
    await fixture.start();
    await failover.begin();
  });
  afterAll(async () => {
    await failover.end();
    await fixture.remove();
  });

  /** Resolves when the primary's commits are in that mode. */
  async function setMode(mode: "sync" | "async"): Promise<void> {
    expectStatus(await fixture.platform.rest.patch<ServiceJson>(fixture.path(), { replication_mode: mode }), 200);
    await waitUntil(`commits are ${mode}`, async () => {
      const { primary } = await roles();
      const [row] = await fixture.queryNode(primary, "SHOW synchronous_standby_names");
      return (row?.["synchronous_standby_names"] !== "") === (mode === "sync");
    });
  }

  it("does not while failovers are suspended, until an operator accepts the loss", async () => {
    const { platform } = fixture;
    const serviceId = fixture.main.service.id;
    await asOperator(platform, ControlService, (control) => control.placeHold({ kind: "failover", reason: "a test" }));
    try {
      await failsOver("machine paused, forced", pauseMachine, async (nodeId) => {
        const { term } = await roles();
        await waitUntil("its lease has been expired for some time", async () => {
          const { leases } = await asOperator(platform, FleetService, (fleet) => fleet.listPrimaryLeases({}));
          const expiresAt = leases.find((lease) => lease.serviceId === serviceId)?.expiresAt;
          return expiresAt !== undefined && Date.now() - timestampMs(expiresAt) > 5_000;
        });
        const operations = await fixture.services.operations(serviceId);
        expect(operations.filter(({ status }) => status === "pending" || status === "running")).toEqual([]);
        expect((await roles()).term).toBe(term);
        const force = (acceptLoss: boolean) =>
          asOperator(platform, FailoverService, (rpcs) => rpcs.forceFailover({ serviceId, nodeId, acceptLoss }));
        const response = await force(false);
        expect(response).toMatchObject({ operationId: "" });
        expect(response.positions.find((each) => each.nodeId === nodeId)).toMatchObject({
          answers: true,
          lostBytes: 0n,
        });
        expect((await force(true)).operationId).not.toBe("");
      });
    } finally {
      await asOperator(platform, ControlService, (control) => control.releaseHold({ kind: "failover" }));
    }
  });

  it("fails over while its engine is paused, and loses no message with synchronous commits", async () => {
    await setMode("sync");
    const queue = await startQueueWorkload(fixture.platform, fixture.main.service.id, "synchronous");
    await failsOver("engine paused, synchronous", pauseEngine);
    await queue.check();
    await setMode("async");
  });

  it.skipIf(cutsUnavailable !== undefined)(
    `fails over when its network is cut, while clients still reach it${why}`,
    async () => {
      const service = () => fixture.services.get(fixture.main.service.id);
      await failsOver("network cut", async (id) => cutMember(fixture.platform, await service(), id));
    },
  );

  it("fails over while controllers are killed as they replace it", async () => {
    const before = new Set((await fixture.services.operations(fixture.main.service.id)).map(({ id }) => id));
    await failsOver("machine paused, controllers killed", pauseMachine, async () => {
      await waitUntil("it is being replaced", async () => {
        return (await fixture.services.operations(fixture.main.service.id)).some(({ id }) => !before.has(id));
      });
      for (const pid of fixture.platform.processes().controllers) killImmediately(pid);
    });
  });

  it("continues for longer than a primary lease without a controller", async () => {
    await untilCandidate();
    const { primary, term, oldHost } = await roles();
    await fixture.platform.killControlPlane();
    const endMs = performance.now() + 2 * primaryLeaseMs;
    // The platform's names are unavailable, too: open sessions continue.
    await waitUntil(
      "a write after the end of any controller's primary lease",
      () => nodeWriters()?.firstAfter(oldHost, endMs),
      {
        withinMs: 60_000,
      },
    );
    await fixture.platform.start();
    expect(await roles()).toMatchObject({ primary, term });
  });

  finalCases(fixture, failover);
});
