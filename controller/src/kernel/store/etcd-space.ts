import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { alarmAt, createSpaceLevel, refuseAt } from "../space/space-level.ts";
import type { StoreSpace } from "../space/store-space.ts";
import { createEtcdClient, type EtcdOptions } from "./etcd-client.ts";

/** How full etcd is, member by member. */
export interface EtcdSpace {
  /** Part of the quota that is in use on the fullest member; 0 until it is known. */
  readonly used: number;
  /** Throws STORE_UNAVAILABLE when users may add nothing more; deletions, and the platform's own writes, go on. */
  admitGrowth(): void;
  /**
   * Makes room where there is some to make: compacts, defragments one member after another, and ends the alarm that
   * etcd raised.
   */
  tidy(signal: AbortSignal): Promise<void>;
  /**
   * The same for an operator, now: every member whose file has anything to give, and the alarm ends however little room
   * there is.
   */
  free(signal: AbortSignal): Promise<void>;
  /** Asks every member. */
  stores(): Promise<StoreSpace[]>;
  close(): void;
}

/** A file with at most this part of it in use is worth defragmenting. */
const worthwhile = 0.75;
/**
 * The same for a file of `refuseAt` of the quota and more. etcd stops when the file reaches the quota, however much of the file
 * is free, and large values leave free pages that later ones do not fit into.
 */
const worthwhileWhenLarge = 0.97;
const lookEveryMs = 5_000;
const defragmentMs = 60_000;
const commitMs = 500;

interface Sizes {
  readonly memberId: string;
  readonly fileBytes: number;
  readonly usedBytes: number;
}

/** `quotaBytes` is etcd's own setting (`--quota-backend-bytes`). */
export function createEtcdSpace(options: EtcdOptions & { readonly quotaBytes: number; readonly log: Log }): EtcdSpace {
  const { hosts, quotaBytes, log } = options;
  const members = hosts.map((host) => ({ host, client: createEtcdClient({ ...options, hosts: [host] }) }));
  /** For calls that any member may serve. */
  const cluster = createEtcdClient(options);
  const level = createSpaceLevel("etcd", quotaBytes, log);
  const lookNow = () => inBackground(log, "size of etcd", look());
  const looking = setInterval(lookNow, lookEveryMs);
  looking.unref();
  lookNow();

  async function sizesOf({ client }: (typeof members)[number]): Promise<Sizes> {
    const status = await client.call((call) => client.raw.maintenance.status(call));
    const { header, dbSize, dbSizeInUse } = status as typeof status & { dbSizeInUse?: string };
    // etcd before 3.4 does not report the bytes in use of its file.
    return { memberId: header.member_id, fileBytes: Number(dbSize), usedBytes: Number(dbSizeInUse ?? dbSize) };
  }

  /** A member that does not answer is not counted: that is the cluster's affair. */
  async function look(): Promise<Sizes[]> {
    const sizes = (await Promise.allSettled(members.map(sizesOf))).flatMap((each) =>
      each.status === "fulfilled" ? [each.value] : [],
    );
    if (sizes.length > 0) level.note(Math.max(...sizes.map(({ usedBytes }) => usedBytes)));
    return sizes;
  }

  async function compact(): Promise<void> {
    const { kv } = cluster.raw;
    const { header } = await cluster.call((call) => kv.range({ key: Buffer.from("/"), count_only: true }, call));
    await cluster
      .call((call) => kv.compact({ revision: header.revision, physical: true }, call))
      // It is compacted already.
      .catch((error: unknown) => log.debug("etcd not compacted", { error: String(error) }));
  }

  async function defragment(isWorthwhile: (sizes: Sizes) => boolean, signal: AbortSignal): Promise<void> {
    // etcd reports the bytes in use as of its last commit to disk.
    await delay(commitMs, undefined, { signal }).catch(() => undefined);
    for (const member of members) {
      if (signal.aborted) return;
      const sizes = await sizesOf(member);
      if (!isWorthwhile(sizes)) continue;
      await member.client.raw.maintenance.defragment({ deadline: new Date(Date.now() + defragmentMs) });
      log.info("etcd defragmented", { member: member.host, fileBytes: sizes.fileBytes });
    }
  }

  /** Ids of the members that have raised the alarm; it stops all writing until it is disarmed, even with room again. */
  async function alarms(): Promise<string[]> {
    const { maintenance } = cluster.raw;
    const raised = await cluster.call((call) => maintenance.alarm({ action: "Get" }, call));
    return raised.alarms
      .filter(({ alarm }) => String(alarm).toUpperCase() === "NOSPACE")
      .map(({ memberID }) => memberID);
  }

  async function endAlarm(): Promise<void> {
    for (const memberID of await alarms()) {
      const ended = { action: "Deactivate", memberID, alarm: "Nospace" } as const;
      await cluster.call((call) => cluster.raw.maintenance.alarm(ended, call));
      log.warn("etcd writes again", { member: memberID });
    }
  }

  return {
    get used() {
      return level.used;
    },
    admitGrowth: level.admitGrowth,
    async tidy(signal) {
      const before = await look();
      if (before.some(({ fileBytes }) => fileBytes >= alarmAt * quotaBytes)) {
        await compact();
        const large = ({ fileBytes, usedBytes }: Sizes) =>
          fileBytes >= alarmAt * quotaBytes &&
          usedBytes <= fileBytes * (fileBytes >= refuseAt * quotaBytes ? worthwhileWhenLarge : worthwhile);
        await defragment(large, signal);
        await look();
      }
      if (level.used < refuseAt) await endAlarm();
    },
    async free(signal) {
      await compact();
      await defragment(({ fileBytes, usedBytes }) => usedBytes < fileBytes, signal);
      const after = await look();
      if (after.every(({ fileBytes }) => fileBytes < quotaBytes)) await endAlarm();
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
      clearInterval(looking);
      for (const { raw } of [cluster, ...members.map(({ client }) => client)]) raw.close();
    },
  };
}
