import { readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import { type AcknowledgedWriter, flushOnWrite, writeValues } from "../faults/acknowledged-writer.ts";
import { commandOnce } from "@holdfast/testing/api/clients.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type NodeWriters, countersOf, startNodeWriters } from "./replication/node-writers.ts";
import { createFailures, type Fault } from "./replication/failures.ts";

describe("a Valkey whose primary fails", () => {
  const writing = new AbortController();
  const figures: string[] = [];
  let platform: Platform;
  let services: Services;
  let cache: RunningService;
  let writer: AcknowledgedWriter;
  let nodeWriters: NodeWriters | undefined;
  let shell: CommandLine;
  /** Ranges of row numbers that may be lost: rows from right before each automatic failover. */
  const lossy: (readonly [after: number, until: number])[] = [];

  beforeAll(async () => {
    platform = await startPlatform();
    shell = createCommandLine({});
    symlinkSync(platform.directory, join(shell.home, ".holdfast"));
    services = createServices(platform);
    cache = await services.createRunning("cache", {
      database_type: "valkey",
      node_count: 2,
      parameters: flushOnWrite,
    });
    writer = writeValues(platform, cache, writing.signal);
    nodeWriters = startNodeWriters(
      cache.service.nodes.map(({ hostname }) => hostname),
      countersOf(platform, cache),
    );
  });

  afterAll(async () => {
    writing.abort();
    await nodeWriters?.stop();
    console.log(figures.join("\n"));
    shell?.remove();
    await platform?.remove();
  });

  const path = (rest: string) => `/managed-services/${cache.service.id}${rest}`;
  const fixture = {
    get platform() {
      return platform;
    },
    get services() {
      return services;
    },
    get main() {
      return cache;
    },
    statusOf: async (nodeId: string) =>
      expectStatus(await platform.rest.get<ReplicationStatus>(path(`/nodes/${nodeId}/replication-status`)), 200).json,
  };
  const failures = createFailures(fixture, () => nodeWriters, figures);
  const { roles, processesOf, untilReplicaCounts: untilCandidate, failsOver, pauseMachine, pauseEngine } = failures;

  const askAs = (host: string, user: string, password: string, command: string, ...args: string[]) =>
    commandOnce(platform, { ...cache.connection, host }, { user, password }, command, ...args);

  /** Fails over once the reported lag is 0; rows that were acknowledged before that have to survive. */
  async function failsOverAsync(name: string, fault: Fault, begin?: (replica: string) => Promise<void>): Promise<void> {
    let after = 0;
    await untilCandidate();
    const { replica } = await roles();
    await waitUntil("the replica lags by nothing", async () => {
      after = writer.last;
      return (await fixture.statusOf(replica)).lag_bytes === 0;
    });
    await failsOver(name, fault, begin);
    lossy.push([after, writer.last]);
  }

  it("fails over while its machine is paused, with a user that was created during the failover", async () => {
    let password = "";
    await failsOverAsync("machine paused", pauseMachine, async (replica) => {
      await waitUntil("the replica is the primary", async () => (await roles()).primary === replica);
      const user = { username: "late", role: "readwrite" };
      // A 409 may also mean that the service has another operation in progress.
      await waitUntil("a user is created", async () => {
        await platform.rest.post(path("/database-users"), user);
        return (await platform.rest.get(path("/database-users/late"))).status === 200;
      });
      const reveal = await platform.rest.post<{ password: string }>(path("/database-users/late/reveal-password"));
      ({ password } = expectStatus(reveal, 200).json);
    });
    const { newHost: oldPrimary } = await roles();
    await waitUntil("the user is at the one that was away", async () => {
      return askAs(oldPrimary, "late", password, "GET", "nothing").then(
        (value) => value === null,
        () => false,
      );
    });
  });

  it("fails over while its engine is paused", async () => {
    await failsOverAsync("engine paused", pauseEngine);
  });

  it("fails over when its data are deleted, and no replica copies a primary without data", async () => {
    await failsOverAsync("data gone", (id) => {
      const { engine = 0 } = processesOf(id);
      rmSync(`/proc/${engine}/cwd/appendonlydir`, { recursive: true });
      killImmediately(engine);
    });
  });

  failures.survivedFaultCases(() => writer);

  it("promotes no replica that was down, even if it recovers before the primary", async () => {
    await untilCandidate();
    const { primary, replica, term, newHost } = await roles();
    const spec = join(platform.directory, "machines", primary, "state", "instance", "spec.bin");
    const repairReplica = pauseMachine(replica);
    await waitUntil("the primary has no failover candidate", () => {
      return fromBinary(InstanceSpecSchema, readFileSync(spec)).replication?.voters.length === 0;
    });
    const before = writer.acknowledged;
    await waitUntil("it accepts writes by itself", () => writer.acknowledged > before + 5);
    const repairPrimary = pauseMachine(primary);
    const atMs = performance.now();
    for (const id of [primary, replica]) killImmediately(processesOf(id).engine ?? 0);
    repairReplica();
    await waitUntil("the one that was away is back", async () => {
      const replication = await askAs(newHost, cache.connection.user, cache.password, "INFO", "replication").catch(
        () => "",
      );
      return String(replication).includes("role:slave");
    });
    // Time: the length of the pause, in which a promotion would end.
    await sleep(20_000);
    expect(nodeWriters?.firstAfter(newHost, atMs)).toBeUndefined();
    repairPrimary();
    const resumedAt = writer.acknowledged;
    await waitUntil("writes continue", () => writer.acknowledged > resumedAt + 5);
    expect(await roles()).toMatchObject({ primary, term });
  });

  it("shows the steps of a failover to a chosen replica, and serves valkey-cli after it", async () => {
    await untilCandidate();
    const { replica } = await roles();
    const watched = await shell.runHere(["services", "failover", "cache", replica, "--watch"]);
    expect(watched).toMatchObject({ code: 0 });
    expect((await roles()).primary).toBe(replica);
    // A session that begins while the replica's listener gets its new settings is closed: a retry is served.
    const cliOutput = await waitUntil("valkey-cli is served", async () => {
      const ran = await shell.run(["services", "connect", "cache", "--", "--no-auth-warning", "INCR", "judged"]);
      return ran.code === 0 && ran;
    });
    expect(cliOutput.stdout).toBe("1\n");
  });

  it("continues for longer than a primary lease without a controller", async () => {
    await untilCandidate();
    const { primary, term, oldHost } = await roles();
    await platform.killControlPlane();
    const endMs = performance.now() + 2 * primaryLeaseMs;
    // The platform's names are unavailable, too: open sessions continue.
    await waitUntil(
      "a write after the end of any controller's primary lease",
      () => nodeWriters?.firstAfter(oldHost, endMs),
      {
        withinMs: 60_000,
      },
    );
    await platform.start();
    expect(await roles()).toMatchObject({ primary, term });
  });

  it("never had two writable primaries, and no failover without an end", async () => {
    expect(nodeWriters?.overlaps()).toEqual([]);
    const operations = await services.operations(cache.service.id);
    expect(operations.filter(({ status }) => status === "pending" || status === "running")).toEqual([]);
    const failedOver = operations.filter(({ type, status }) => type === "failover" && status === "completed");
    expect(failedOver.length).toBeGreaterThanOrEqual(4);
  });

  it("has lost at most rows from right before an automatic failover", async () => {
    writing.abort();
    await writer.done;
    const missing = await writer.missing();
    figures.push(`${missing.length} of ${writer.acknowledged} acknowledged rows were lost`);
    expect(missing.filter((id) => !lossy.some(([after, until]) => id > after && id <= until))).toEqual([]);
  });
});
