import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { alarmAt, createSpaceLevel, refuseAt, type StoreSpace } from "../space/space-level.ts";
import { createEtcdClient, type EtcdOptions } from "./etcd-client.ts";

/**
 * Disk usage of etcd. The members' sizes are polled. Above `alarmAt` of the quota the history of keys is compacted and
 * the files are defragmented, and above `refuseAt` users may only delete.
 */
export interface EtcdSpace {
  /** Used fraction of the quota on the fullest member; 0 until the first poll. */
  readonly used: number;
  /** Throws STORE_UNAVAILABLE while users may only delete. Deletions and the platform's own writes still work. */
  admitGrowth(): void;
  /**
   * If a member is above `alarmAt`: compacts, defragments one member after another, and disarms the NOSPACE alarm when
   * space is free again.
   */
  tidy(signal: AbortSignal): Promise<void>;
  /**
   * Frees space on an operator's request: compacts, defragments every member whose file has unused pages, and disarms
   * the alarm if every file is below the quota then.
   */
  free(signal: AbortSignal): Promise<void>;
  /** Queries the disk usage of every member. */
  stores(): Promise<StoreSpace[]>;
  close(): void;
}

/** A file is defragmented if at most this fraction of it is in use. */
const defragmentBelow = 0.75;
/**
 * Limit of that fraction for a file above `refuseAt` of the quota. etcd refuses writes when the file reaches the quota,
 * even if much of the file is unused, and large values leave free pages into which later values do not fit.
 */
const defragmentBelowWhenLarge = 0.97;
const pollIntervalMs = 5_000;
const defragmentTimeoutMs = 60_000;
const commitDelayMs = 500;

interface Sizes {
  readonly memberId: string;
  readonly fileBytes: number;
  readonly usedBytes: number;
}

/** `quotaBytes` is etcd's own limit (`--quota-backend-bytes`). */
export function createEtcdSpace(options: EtcdOptions & { readonly quotaBytes: number; readonly log: Log }): EtcdSpace {
  const { hosts, quotaBytes, log } = options;
  const members = hosts.map((host) => ({ host, client: createEtcdClient({ ...options, hosts: [host] }) }));
  /** Client for calls that any member can serve. */
  const cluster = createEtcdClient(options);
  const level = createSpaceLevel("etcd", quotaBytes, log);
  const pollNow = () => inBackground(log, "size of etcd", poll());
  const polling = setInterval(pollNow, pollIntervalMs);
  polling.unref();
  pollNow();

  async function sizesOf({ client }: (typeof members)[number]): Promise<Sizes> {
    const status = await client.call((call) => client.raw.maintenance.status(call));
    // The client's type lacks the field, which etcd has since 3.4.
    const { header, dbSize, dbSizeInUse } = status as typeof status & { dbSizeInUse: string };
    return { memberId: header.member_id, fileBytes: Number(dbSize), usedBytes: Number(dbSizeInUse) };
  }

  /** Sizes of the members that respond; members that are down are not counted. */
  async function poll(): Promise<Sizes[]> {
    const sizes = (await Promise.allSettled(members.map(sizesOf))).flatMap((each) =>
      each.status === "fulfilled" ? [each.value] : [],
    );
    if (sizes.length > 0) level.update(Math.max(...sizes.map(({ usedBytes }) => usedBytes)));
    return sizes;
  }

  async function compact(): Promise<void> {
    const { kv } = cluster.raw;
    const { header } = await cluster.call((call) => kv.range({ key: Buffer.from("/"), count_only: true }, call));
    await cluster
      .call((call) => kv.compact({ revision: header.revision, physical: true }, call))
      // The error means that the revision was compacted before.
      .catch((error: unknown) => log.debug("etcd not compacted", { error: String(error) }));
  }

  async function defragment(accepts: (sizes: Sizes) => boolean, signal: AbortSignal): Promise<void> {
    // etcd reports the bytes in use as of its last commit to disk.
    await delay(commitDelayMs, undefined, { signal }).catch(() => undefined);
    for (const member of members) {
      if (signal.aborted) return;
      const sizes = await sizesOf(member);
      if (!accepts(sizes)) continue;
      await member.client.raw.maintenance.defragment({ deadline: new Date(Date.now() + defragmentTimeoutMs) });
      log.info("etcd defragmented", { member: member.host, fileBytes: sizes.fileBytes });
    }
  }

  /**
   * Ids of the members with a NOSPACE alarm. An alarm stops all writes until it is disarmed, even if the member has
   * free space.
   */
  async function alarms(): Promise<string[]> {
    const { maintenance } = cluster.raw;
    const raised = await cluster.call((call) => maintenance.alarm({ action: "Get" }, call));
    return raised.alarms
      .filter(({ alarm }) => String(alarm).toUpperCase() === "NOSPACE")
      .map(({ memberID }) => memberID);
  }

  async function disarmAlarms(): Promise<void> {
    for (const memberID of await alarms()) {
      const ended = { action: "Deactivate", memberID, alarm: "Nospace" } as const;
      await cluster.call((call) => cluster.raw.maintenance.alarm(ended, call));
      log.warn("etcd accepts writes again", { member: memberID });
    }
  }

  return {
    get used() {
      return level.used;
    },
    admitGrowth: level.admitGrowth,
    async tidy(signal) {
      const before = await poll();
      if (before.some(({ fileBytes }) => fileBytes >= alarmAt * quotaBytes)) {
        await compact();
        const large = ({ fileBytes, usedBytes }: Sizes) =>
          fileBytes >= alarmAt * quotaBytes &&
          usedBytes <= fileBytes * (fileBytes >= refuseAt * quotaBytes ? defragmentBelowWhenLarge : defragmentBelow);
        await defragment(large, signal);
        await poll();
      }
      if (level.used < refuseAt) await disarmAlarms();
    },
    async free(signal) {
      await compact();
      await defragment(({ fileBytes, usedBytes }) => usedBytes < fileBytes, signal);
      const after = await poll();
      if (after.every(({ fileBytes }) => fileBytes < quotaBytes)) await disarmAlarms();
    },
    async stores() {
      const raised = await alarms().catch((): string[] => []);
      const sizes = await Promise.allSettled(members.map(sizesOf));
      return members.map(({ host }, index) => {
        const size = sizes[index];
        const store = { name: `etcd ${host}`, quotaBytes };
        if (size?.status !== "fulfilled") return { ...store, usedBytes: undefined };
        const { memberId, usedBytes, fileBytes } = size.value;
        return { ...store, usedBytes, fileBytes, noSpace: raised.includes(memberId) };
      });
    },
    close() {
      clearInterval(polling);
      for (const { raw } of [cluster, ...members.map(({ client }) => client)]) raw.close();
    },
  };
}
