import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { ReplicationStatus, ServiceNode } from "@holdfast/sdk/index.ts";
import { addressOf, queryOnce } from "@holdfast/testing/api/clients.ts";
import { type OperationJson, type ServiceJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { countersOf, rowsOf, startNodeWriters } from "../../system/replication/node-writers.ts";
import type { Repair } from "../../system/replication/failures.ts";
import { writeRows, writeValues } from "../acknowledged-writer.ts";

/** A node and its machine. */
export interface Member extends ServiceNode {
  readonly address: string;
}

/** Roles of the nodes before a fault. */
export interface Roles {
  readonly primary: Member;
  readonly replicas: readonly Member[];
  readonly term: number;
}

/** Breaks machines or the network between them. */
export type MemberFault = (roles: Roles) => Promise<Repair>;

/**
 * A service of several nodes with a writer of acknowledged rows, and sessions that write to each node continuously.
 * After each fault both are compared: no other node accepted a write between two writes of one node, and no row is lost
 * except, in mode `async`, those of the fault's own time.
 */
export interface MemberService {
  readonly id: string;
  roles(): Promise<Roles>;
  untilHealthy(): Promise<void>;
  /** Runs one fault at a time. */
  exclusively(fault: () => Promise<void>): Promise<void>;
  /** Expects another node to become the primary during the fault, and the old one to follow once it is repaired. */
  failsOver(name: string, fault: MemberFault, moreMs?: number): Promise<void>;
  /**
   * Expects the primary to remain the primary for `lastMs` of the fault and until users are informed. Writes resume at
   * the latest when the fault ends.
   */
  remainsPrimary(
    name: string,
    fault: MemberFault,
    lastMs: number,
    isReported?: (service: ServiceJson) => boolean,
  ): Promise<void>;
  /** Expects one primary, on any node, after `lastMs` of the fault, and a healthy service. */
  survives(name: string, fault: MemberFault, lastMs: number): Promise<void>;
  /** Throws if an acknowledged row is lost, or an operation has not ended. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export interface MemberServiceDeps {
  readonly platform: Platform;
  readonly services: Services;
  readonly note: (figure: string) => void;
}

const wellMs = 180_000;
const firstWriteMs = 90_000;

export async function openMembers(
  { platform, services, note }: MemberServiceDeps,
  name: string,
  body: Record<string, unknown>,
): Promise<MemberService> {
  const { id } = await services.create(name, body);
  // The first machine waits until the image is imported.
  await services.settled(id, "Running", 300_000);
  const running = await services.open(id);
  const isValkey = running.service.database_type === "valkey";
  if (!isValkey) await queryOnce(platform, running.connection, running, "CREATE TABLE sides (host text)");
  const writing = new AbortController();
  const writer = isValkey
    ? writeValues(platform, running, writing.signal)
    : await writeRows(platform, running, writing.signal);
  const hosts = running.service.nodes.map(({ hostname }) => hostname);
  const nodeWriters = startNodeWriters(hosts, (isValkey ? countersOf : rowsOf)(platform, running));
  /** Rows that were acknowledged in mode `async` during a fault. */
  const lost = new Set<number>();
  const isLossless = body["replication_mode"] !== undefined;
  let last: Promise<unknown> = Promise.resolve();

  const path = `/managed-services/${id}`;
  const wait = { withinMs: wellMs, everyMs: 200, describe: () => services.describe(id) };
  const statusOf = async (node: Pick<ServiceNode, "id">) =>
    expectStatus(await platform.rest.get<ReplicationStatus>(`${path}/nodes/${node.id}/replication-status`), 200).json;

  async function roles(): Promise<Roles> {
    const { nodes, primary_node_id: named, term } = withPrimary(await services.get(id));
    const members = await Promise.all(
      nodes.map(async (node) => ({ ...node, address: await addressOf(platform, node.hostname) })),
    );
    const primary = members.find((node) => node.id === named);
    if (primary === undefined) throw new Error("the service has no primary");
    return { primary, replicas: members.filter((node) => node.id !== named), term };
  }

  async function untilHealthy(): Promise<void> {
    await waitUntil(
      "all replicas follow, and the service is healthy",
      async () => {
        const { replicas } = await roles();
        const states = await Promise.all(replicas.map(statusOf));
        const { status, health, operation } = await services.get(id);
        const isHealthy = status === "Running" && health.status === "healthy" && operation === null;
        return isHealthy && states.every(({ sync_state: state }) => state === "streaming");
      },
      wait,
    );
    const before = writer.acknowledged;
    await waitUntil(`writes of ${name} continue`, () => writer.acknowledged > before + 5, wait);
    expect(nodeWriters.overlaps()).toEqual([]);
  }

  /** `since`: rows that were acknowledged after this time may be lost where commits are asynchronous. */
  async function checkRows(since: number): Promise<void> {
    const missing = new Set((await writer.missing()).filter((row) => !lost.has(row)));
    const rows = writer.rows.filter((row) => missing.has(row.id));
    const wrong = rows.filter(({ acknowledgedAt }) => isLossless || acknowledgedAt < since);
    if (wrong.length > 0)
      throw new Error(
        `${wrong.length} acknowledged rows of ${name} are lost: ${JSON.stringify(wrong.slice(0, 5))}, the fault came at ${since}`,
      );
    for (const row of missing) lost.add(row);
    if (missing.size > 0) note(`${name}: ${missing.size} rows of the fault's own time are lost`);
  }

  /** Maximum time in ms without an acknowledged row. */
  function longestPause(since: number): number {
    const times = writer.rows.flatMap(({ acknowledgedAt }) => (acknowledgedAt >= since ? acknowledgedAt : []));
    return Math.max(...times.map((at, index) => at - (times[index - 1] ?? since)));
  }

  const failovers = async () => (await services.operations(id)).filter(({ type }) => type === "failover");

  /** Roles before a fault. Rows that were acknowledged after `since` may be in the reported lag, plus a second. */
  async function begin(): Promise<{ readonly before: Roles; readonly since: number }> {
    await untilHealthy();
    // The primary gets its failover candidates by a later settings update.
    const isCandidate = async () => isFailoverCandidate(platform.directory, id, (await roles()).primary.id);
    await waitUntil(`the primary of ${name} has a failover candidate`, isCandidate, wait);
    const before = await roles();
    const reported = await Promise.all(before.replicas.map(statusOf));
    const lagMs = Math.max(...reported.map(({ lag_seconds: lag }) => (lag ?? 0) * 1_000));
    return { before, since: Date.now() - lagMs - 1_000 };
  }

  return {
    id,
    roles,
    untilHealthy,
    exclusively(fault) {
      const run = last.then(fault);
      last = run.catch(() => undefined);
      return run;
    },
    async failsOver(what, fault, moreMs = 2_000) {
      const { before, since } = await begin();
      const atMs = performance.now();
      const repair = await fault(before);
      let repairedMs: number;
      try {
        const firstMs = await waitUntil(
          `another node of ${name} accepts writes: ${what}`,
          () => {
            const times = before.replicas.flatMap(({ hostname }) => nodeWriters.firstAfter(hostname, atMs) ?? []);
            return times.length === 0 ? undefined : Math.min(...times);
          },
          { ...wait, withinMs: firstWriteMs },
        );
        note(`${name}: ${what}: first write at a new primary after ${Math.round(firstMs - atMs)} ms`);
        // Time: the length of the fault after the first write.
        await sleep(moreMs);
      } finally {
        repairedMs = performance.now();
        await repair();
      }
      await untilHealthy();
      note(`${name}: ${what}: all follow ${Math.round(performance.now() - repairedMs)} ms after its end`);
      const after = await roles();
      expect(after.primary.id).not.toBe(before.primary.id);
      expect(after.term).toBe(before.term + 1);
      expect((await failovers())[0]).toMatchObject({ status: "completed" } satisfies Partial<OperationJson>);
      await checkRows(since);
    },
    async remainsPrimary(what, fault, lastMs, isReported = () => true) {
      const { before, since } = await begin();
      const earlier = await failovers();
      const repair = await fault(before);
      try {
        // Time: the length of the fault.
        await sleep(lastMs);
        await waitUntil(`it is reported of ${name}: ${what}`, async () => isReported(await services.get(id)), wait);
        const { acknowledged } = writer;
        await waitUntil(`${name} accepts writes during: ${what}`, () => writer.acknowledged > acknowledged + 5, wait);
      } finally {
        await repair();
      }
      const repairedMs = performance.now();
      await untilHealthy();
      note(
        `${name}: ${what}: longest pause ${longestPause(since)} ms, well ${Math.round(performance.now() - repairedMs)} ms after its end`,
      );
      const { primary, term } = await roles();
      expect({ primary: primary.id, term }).toEqual({ primary: before.primary.id, term: before.term });
      expect(await failovers()).toHaveLength(earlier.length);
      await checkRows(Number.POSITIVE_INFINITY);
    },
    async survives(what, fault, lastMs) {
      const { before, since } = await begin();
      const repair = await fault(before);
      try {
        // Time: the length of the fault.
        await sleep(lastMs);
      } finally {
        await repair();
      }
      const repairedMs = performance.now();
      await untilHealthy();
      const { term } = await roles();
      note(
        `${name}: ${what}: longest pause ${longestPause(since)} ms, ${term - before.term} terms, well ${Math.round(performance.now() - repairedMs)} ms after its end`,
      );
      await checkRows(since);
    },
    async settle() {
      await untilHealthy();
      writing.abort();
      await writer.done;
      await checkRows(Number.POSITIVE_INFINITY);
      const open = (await services.operations(id)).filter(({ status }) => status === "pending" || status === "running");
      expect(open).toEqual([]);
    },
    async close() {
      writing.abort();
      await nodeWriters.stop();
      await writer.done;
    },
  };
}
