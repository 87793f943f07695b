import { setTimeout as sleep } from "node:timers/promises";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { crashesOf, lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createReleaseDirectory } from "@holdfast/testing/platform/release-directory.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Before, FailoverFault } from "./failovers/failover-fault.ts";
import { createFailoverFixture, type FailoverFixture, type FixtureKind } from "./failovers/failover-fixture.ts";
import { injectFault } from "./failovers/inject-fault.ts";

/** Number of faults; `npm run faults -- --failovers` enables the test. */
const faultCount = Number(process.env["HOLDFAST_TEST_FAILOVERS"] ?? "0");
const seed = Number(process.env["HOLDFAST_TEST_SEED"] ?? Date.now() % 1_000_000);
const longMs = 10 * 60_000;
const kinds: readonly FixtureKind[] = ["sync", "valkey"];

/** A release is offered and paused before each fault, and rolled out during it: no other machines exist. */
describe.skipIf(faultCount === 0 || !asRoot)(
  `agent handovers during a change of the primary${asRoot ? "" : " (skipped: needs root, for machines of an image)"}`,
  () => {
    const releases = createReleaseDirectory();
    const random = createRandom(seed);
    let platform: Platform;
    let release = 1;
    let digest = "";

    beforeAll(async () => {
      console.log(`seed ${seed}`);
      digest = releases.put("1.0.0");
      const environment = {
        HOLDFAST_AGENT_UPGRADE: "on",
        HOLDFAST_AGENT_CODE: releases.directory,
        HOLDFAST_AGENT_UPGRADE_SHARES: "100",
        HOLDFAST_AGENT_UPGRADE_SOAK_S: "1",
      };
      platform = await startPlatform({ environment });
    }, longMs);
    afterAll(async () => {
      await platform?.remove();
      releases.remove();
    }, longMs);

    const rollout = () => asOperator(platform, AgentRolloutService, (rpcs) => rpcs.getAgentRollout({}));
    const resume = () => asOperator(platform, AgentRolloutService, (rpcs) => rpcs.resumeAgentRollout({}));
    const agents = async () => (await asOperator(platform, AgentRolloutService, (rpcs) => rpcs.listAgents({}))).agents;
    const describeRollout = async () => `${JSON.stringify(await agents())}\n${lastLogLines(platform.directory, 40)}`;

    /**
     * Resumes the rollout as an operator. It halts at a machine whose engine fails over while its new agent is on
     * probation.
     */
    async function resumeRollout(): Promise<void> {
      const { state, reason } = await rollout();
      if (state !== "Halted") return;
      if (!reason.includes("unhealthy")) throw new GiveUp(`it halted: ${reason}\n${await describeRollout()}`);
      console.log(`halted, resumed: ${reason}`);
      await resume();
    }

    async function isReplaced(machineId: string): Promise<boolean> {
      await resumeRollout();
      return (await agents()).some((agent) => agent.machineId === machineId && agent.digest === digest);
    }
    const replaced = (machineId: string) =>
      waitUntil(`the agent of ${machineId} is replaced`, () => isReplaced(machineId), {
        everyMs: 20,
        describe: describeRollout,
      });

    async function completed(): Promise<void> {
      await waitUntil(
        `release ${release} is everywhere`,
        async () => {
          await resumeRollout();
          const { state, digest: offered, behind, upgrading } = await rollout();
          return state === "Completed" && offered === digest && behind === 0 && upgrading === 0;
        },
        { everyMs: 200, describe: describeRollout },
      );
    }

    /** Restarts the controllers, which offer the release that they find. No machine gets it before `resume`. */
    async function offerNext(): Promise<void> {
      await asOperator(platform, AgentRolloutService, (rpcs) => rpcs.pauseAgentRollout({}));
      release += 1;
      digest = releases.put(`${release}.0.0`);
      for (const pid of platform.processes().controllers) killImmediately(pid);
      await waitUntil("the release is offered, and waits", async () => {
        const { state, digest: offered } = await rollout();
        return state === "Paused" && offered === digest;
      });
    }

    const replacedAt = (step: string): FailoverFault => ({
      name: `machine paused, its replica's agent is replaced at ${step}`,
      expects: "failover",
      async run(fixture, { primary, replica, newHost, operations }, markFault) {
        const repair = fixture.pause(fixture.pidsOf(primary, "machine"));
        const atMs = markFault();
        try {
          await fixture.reaches(step, operations);
          // The paused machine is unreachable, so the other one is the first.
          await resume();
          await Promise.all([fixture.acceptsWrites(newHost, atMs), replaced(replica)]);
        } finally {
          repair();
        }
        await replaced(primary);
      },
    });

    const backAndReplaced: FailoverFault = {
      name: "machine is back while it is replaced, and so are both agents",
      expects: "either",
      async run(fixture, { primary, replica, operations }, markFault) {
        const repair = fixture.pause(fixture.pidsOf(primary, "machine"));
        markFault();
        try {
          await fixture.reaches("FencePrimary", operations);
          await resume();
          // Time: the moment of the second fault, which is random.
          await sleep(random.between(0, 1_000));
        } finally {
          repair();
        }
        for (const id of [replica, primary]) await replaced(id);
      },
    };

    /** `victim`: the machine whose agent handover is in progress when the service is requested to fail over. */
    const switchover = (victim: "primary" | "replica"): FailoverFault => ({
      name: `a switchover as the agent of its ${victim} changes places`,
      expects: "failover",
      async run(fixture, before, markFault) {
        await resume();
        await changing(fixture, before[victim]);
        markFault();
        await askToFailOver(fixture, before);
        for (const id of [before.replica, before.primary]) await replaced(id);
      },
    });

    /** Resolves once the machine's next agent runs together with the old one. */
    async function changing(fixture: FailoverFixture, machineId: string): Promise<void> {
      await waitUntil(`agents of ${machineId} change places`, () => fixture.processesOf(machineId).agents.length > 1, {
        everyMs: 10,
        describe: describeRollout,
      });
    }

    async function askToFailOver(fixture: FailoverFixture, { replica, operations }: Before): Promise<void> {
      const isAccepted = async () =>
        (await platform.rest.post(fixture.path(`/nodes/${replica}/failover`))).status === 202;
      await waitUntil("the switchover is taken", isAccepted, { everyMs: 20 });
      await fixture.ends(operations);
      const [failover] = (await fixture.services.operations(fixture.main.service.id)).filter(
        ({ id }) => !operations.has(id),
      );
      expect(failover).toMatchObject({ type: "failover", status: "completed" });
    }

    const faults = [
      ...["FencePrimary", "PromoteReplica", "MoveDNS"].map(replacedAt),
      backAndReplaced,
      switchover("primary"),
      switchover("replica"),
    ];

    it.each(kinds)(
      "leave a %s service with one writable primary and every row",
      { timeout: 3 * longMs },
      async (kind) => {
        const fixture = await createFailoverFixture(platform, kind, { random: random.fork() });
        try {
          await completed();
          for (const fault of faults) {
            await offerNext();
            const { withoutWritesMs, hasFailedOver, lost } = await injectFault(fixture, fault);
            await completed();
            const end = hasFailedOver ? "failed over" : "same primary";
            console.log(
              `${kind} ${fault.name}: ${(withoutWritesMs / 1_000).toFixed(1)} s without writes, ${end}, ${lost} lost`,
            );
          }
          const operations = await createServices(platform).operations(fixture.main.service.id);
          expect(operations.filter(({ finished_at: at }) => at === null)).toEqual([]);
          expect(fixture.writer.acknowledged).toBeGreaterThan(100);
        } finally {
          await fixture.stop();
        }
        expectStatus(await platform.rest.delete(fixture.path("")), 202);
        await fixture.services.deleted(fixture.main.service.id);
        expect(crashesOf(platform.directory)).toEqual([]);
      },
    );
  },
);
