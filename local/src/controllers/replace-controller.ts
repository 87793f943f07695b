import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createEtcdClient, type EtcdClient } from "@holdfast/controller/kernel/store/etcd-client.ts";
import { UserError } from "../user-error.ts";
import { etcdUrlsOf } from "./controller-host.ts";
import { newEtcdCredentials, openPrepared, prepareReplacement } from "./prepared-directory.ts";

export interface ReplaceOptions {
  /** Directory of `holdfast controllers prepare`. */
  readonly directory: string;
  /** Address of the lost host, which the new one has too. */
  readonly address: string;
  readonly now: () => number;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** A member of etcd by its list. */
interface Member {
  readonly id: string;
  readonly isStarted: boolean;
}

const pollMs = 500;
/** etcd adds no member before the others have been connected to each other for 5 s. */
const addLimitMs = 30_000;

/**
 * Replaces the member of etcd of a lost host by a new one, and writes the join file of the new host, whose path it
 * returns. Idempotent: after a crash the same call continues. Throws a UserError if the host's etcd runs, or if the
 * others have no majority.
 */
export async function replaceController(options: ReplaceOptions): Promise<string> {
  const { directory, address, now, signal, note } = options;
  const { addresses } = openPrepared(directory);
  if (!addresses.includes(address))
    throw new UserError(`${address} is not one of the hosts of ${directory}: ${addresses.join(" ")}`);
  const credentials = await newEtcdCredentials(directory, now());
  const open = (hosts: readonly string[]) =>
    createEtcdClient({ hosts: hosts.map((host) => etcdUrlsOf(host).client), credentials });
  const own = open([address]);
  const others = open(addresses.filter((each) => each !== address));
  try {
    if (await responds(own, signal))
      throw new UserError(
        `etcd of ${address} runs; stop the host before it is replaced: holdfast uninstall --remove-data`,
      );
    const before = await memberOf(others, address, signal);
    // A member without a start has been added by an earlier call.
    if (before === undefined || before.isStarted) {
      if (before !== undefined) {
        await others.call((call) => others.raw.cluster.memberRemove({ ID: before.id }, call), signal);
        note(`etcd has no member at ${address} any more`);
      }
      await addMember(others, address, options);
      note(`etcd has a new member at ${address}, which has not started`);
    }
  } catch (error) {
    if (error instanceof UserError || signal.aborted) throw error;
    const remaining = addresses.filter((each) => each !== address);
    throw new UserError(
      error instanceof HoldfastError && error.key === "STORE_UNAVAILABLE"
        ? `etcd of ${remaining.join(", ")} does not respond: connect to port 2379 of these hosts from here, and start those that are down; more than half of all members must run`
        : `etcd does not change its members: ${(error as Error).message}`,
    );
  } finally {
    own.raw.close();
    others.raw.close();
  }
  return prepareReplacement(directory, address, now());
}

async function responds(client: EtcdClient, signal: AbortSignal): Promise<boolean> {
  try {
    await client.call((call) => client.raw.maintenance.status(call), signal);
    return true;
  } catch (error) {
    if (signal.aborted) throw error;
    return false;
  }
}

async function memberOf(client: EtcdClient, address: string, signal: AbortSignal): Promise<Member | undefined> {
  const { members } = await client.call((call) => client.raw.cluster.memberList({}, call), signal);
  const found = members.find(({ peerURLs }) => peerURLs.includes(etcdUrlsOf(address).peer));
  return found && { id: found.ID, isStarted: found.clientURLs.length > 0 };
}

async function addMember(client: EtcdClient, address: string, { now, signal }: ReplaceOptions): Promise<void> {
  const deadline = now() + addLimitMs;
  for (;;) {
    try {
      await client.call((call) => client.raw.cluster.memberAdd({ peerURLs: [etcdUrlsOf(address).peer] }, call), signal);
      return;
    } catch (error) {
      // The call may have succeeded although its response was lost.
      if ((await memberOf(client, address, signal)) !== undefined) return;
      if (signal.aborted || now() > deadline) throw error;
      await sleep(pollMs, undefined, { signal });
    }
  }
}
