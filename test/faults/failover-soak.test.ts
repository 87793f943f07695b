import { setTimeout as sleep } from "node:timers/promises";
import { type ChildProcess, spawn } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type NodeWriters, rowsOf, startNodeWriters } from "../system/replication/node-writers.ts";
import { createFailures } from "../system/replication/failures.ts";
import { createReplicationUnderTest } from "../system/replication/replication-under-test.ts";

/** Duration in seconds, set by `npm run faults -- --soak`; 600 is the ten minutes of the specification. */
const soakS = Number(process.env["HOLDFAST_TEST_SOAK_S"] ?? "0");
const longestPauseMs = 2_000;
const longestCalmMs = 3_000;

describe.skipIf(soakS === 0)(
  "a PostgreSQL whose processes pause repeatedly, for up to two seconds, on a busy core",
  () => {
    const fixture = createReplicationUnderTest();
    let nodeWriters: NodeWriters | undefined;
    const {
      roles,
      processesOf,
      untilReplicaCounts: untilCandidate,
      pauseMachine,
      pauseEngine,
    } = createFailures(fixture, () => nodeWriters, []);
    let busy: ChildProcess | undefined;

    beforeAll(async () => {
      // Started here, because vitest also loads files whose tests are excluded.
      busy = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
      await fixture.start();
      await fixture.addReplica();
      await fixture.queryNode((await roles()).primary, "CREATE TABLE sides (host text)");
      const { nodes } = await fixture.services.get(fixture.main.service.id);
      nodeWriters = startNodeWriters(
        nodes.map(({ hostname }) => hostname),
        rowsOf(fixture.platform, fixture.main),
      );
    });
    afterAll(async () => {
      busy?.kill("SIGKILL");
      await nodeWriters?.stop();
      await fixture.remove();
    });

    function pauseAgent(id: string): () => void {
      const { agent = 0 } = processesOf(id);
      const pids = [agent, ...findBelow(agent)];
      for (const pid of pids) killImmediately(pid, "SIGSTOP");
      return () => {
        for (const pid of pids) killImmediately(pid, "SIGCONT");
      };
    }

    it("has no failover, no second writer, and every row", { timeout: soakS * 1_000 + 240_000 }, async () => {
      await untilCandidate();
      const { primary, replica, term } = await roles();
      const seed = Number(process.env["HOLDFAST_TEST_SEED"] ?? Date.now());
      const random = createRandom(seed);
      const untilMs = performance.now() + soakS * 1_000;
      let pauses = 0;
      while (performance.now() < untilMs) {
        const pause = random.pick([pauseMachine, pauseEngine, pauseAgent]);
        const repair = pause(random.pick([primary, primary, replica]));
        // Time: the length of the pause, which is random.
        await sleep(random.next() * longestPauseMs);
        repair();
        pauses += 1;
        // Time: the moment of the next fault, which is random.
        await sleep(random.next() * longestCalmMs);
        expect({ seed, pauses, ...(await roles()) }).toMatchObject({ primary, term });
      }
      const { acknowledged } = fixture.writer;
      await waitUntil("writes continue", () => fixture.writer.acknowledged > acknowledged + 20);
      const operations = await fixture.services.operations(fixture.main.service.id);
      expect({ seed, failovers: operations.filter(({ type }) => type === "failover") }).toEqual({
        seed,
        failovers: [],
      });
      expect(nodeWriters?.overlaps()).toEqual([]);
      await fixture.stopWriting();
      expect(await fixture.writer.missing()).toEqual([]);
      console.log(`soak: ${pauses} pauses in ${soakS} s, seed ${seed}: no failover`);
    });
  },
);
