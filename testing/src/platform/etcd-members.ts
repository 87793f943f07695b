import { chownSync, copyFileSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { etcdFlags, etcdServes } from "@holdfast/local/etcd.ts";
import { createEtcdClient, type EtcdClient } from "@holdfast/controller/kernel/store/etcd-client.ts";
import { waitUntil } from "../wait-until.ts";
import { freePorts } from "./free-ports.ts";
import { occupyPort } from "./occupied-port.ts";
import { type Platform, type PlatformOptions, startPlatform } from "./platform.ts";
import { killImmediately } from "./platform-processes.ts";
import { asRoot, programDirectory, testProgram, testUid } from "./platform-software.ts";
import { startTemporaryProcess } from "./temporary-process.ts";

/** One member of a platform's etcd. */
export interface EtcdMember {
  readonly name: string;
  /** Kills the member, and prevents its restart until the returned function is called; that resolves once it serves. */
  lose(): Promise<() => Promise<void>>;
  /** Sends SIGSTOP; the returned function sends SIGCONT. */
  pause(): () => void;
}

/** The three members of a platform's etcd. */
export interface EtcdMembers {
  readonly all: readonly EtcdMember[];
  /** The leader, once all reachable members agree. */
  leader(): Promise<EtcdMember>;
  followers(): Promise<readonly EtcdMember[]>;
  /** Makes another member the leader, and resolves once it is. */
  moveLeader(): Promise<void>;
  /** Ends the members; must be called before the platform is removed. */
  end(): Promise<void>;
}

interface Addresses {
  readonly name: string;
  readonly client: string;
  readonly peer: string;
}

/**
 * A platform whose etcd has three members: the one that it runs, and two that join it. Its controllers have all of
 * their addresses.
 */
export async function startPlatformOfThree(
  options: PlatformOptions = {},
): Promise<{ platform: Platform; etcd: EtcdMembers }> {
  const ports = await freePorts(6);
  const at = (index: number) => `https://127.0.0.1:${ports[index]}`;
  const own = { name: "local", client: at(0), peer: at(1) };
  const joining = [2, 4].map((index) => ({ name: `member-${index / 2}`, client: at(index), peer: at(index + 1) }));
  const platform = await startPlatform({
    ...options,
    flags: [...(options.flags ?? []), "--etcd-client-port", `${ports[0]}`, "--etcd-peer-port", `${ports[1]}`],
    environment: {
      ...options.environment,
      HOLDFAST_ETCD: [own, ...joining].map(({ client }) => client).join(","),
    },
  });
  try {
    return { platform, etcd: await joinMembers(platform, own, joining) };
  } catch (error) {
    await platform.remove();
    throw error;
  }
}

async function joinMembers(platform: Platform, own: Addresses, joining: readonly Addresses[]): Promise<EtcdMembers> {
  const clients = new Map([own, ...joining].map((each) => [each.name, openMember(platform.directory, each)]));
  const clientOf = (name: string): EtcdClient => {
    const client = clients.get(name);
    if (client === undefined) throw new Error(`etcd has no member ${name}`);
    return client;
  };
  const statusOf = async (name: string) => {
    const { raw } = clientOf(name);
    const { header, leader } = await raw.maintenance.status({ deadline: new Date(Date.now() + 1_000) });
    return { id: header.member_id, leader };
  };

  const endings: (() => Promise<void>)[] = [];
  const members: EtcdMember[] = [ownMember(platform, own)];
  const known = [own];
  for (const each of joining) {
    // etcd adds no member before all members have been healthy for some seconds.
    const { raw } = clientOf(own.name);
    await waitUntil(
      `${each.name} is a member`,
      async () => {
        await raw.cluster.memberAdd({ peerURLs: [each.peer] }, { deadline: new Date(Date.now() + 2_000) });
        return true;
      },
      { everyMs: 500 },
    );
    known.push(each);
    const { member, end } = await startMember(platform, each, known);
    members.push(member);
    endings.push(end);
    await waitUntil(`${each.name} follows`, async () => (await statusOf(each.name)).leader !== "0");
  }

  async function statuses() {
    const found = await Promise.allSettled(members.map(({ name }) => statusOf(name)));
    return members.flatMap((member, index) => {
      const status = found[index];
      return status?.status === "fulfilled" ? [{ member, ...status.value }] : [];
    });
  }

  async function agreed() {
    return waitUntil("the members of etcd agree on the leader", async () => {
      const answering = await statuses();
      const leading = answering.filter(({ id, leader }) => id === leader);
      const isAgreed = leading.length === 1 && answering.every(({ leader }) => leader === leading[0]?.id);
      return isAgreed && { leading: leading[0], answering };
    });
  }

  async function leader(): Promise<EtcdMember> {
    const { leading } = await agreed();
    if (leading === undefined) throw new Error("etcd has no leader");
    return leading.member;
  }

  return {
    all: members,
    leader,
    async followers() {
      const name = (await leader()).name;
      return members.filter((member) => member.name !== name);
    },
    async moveLeader() {
      const { leading, answering } = await agreed();
      const next = answering.find(({ id }) => id !== leading?.id);
      if (leading === undefined || next === undefined) throw new Error("no other member of etcd answers");
      const { raw } = clientOf(leading.member.name);
      await raw.maintenance.moveLeader({ targetID: next.id }, { deadline: new Date(Date.now() + 5_000) });
      await waitUntil(`${next.member.name} leads etcd`, async () => (await leader()).name === next.member.name);
    },
    async end() {
      for (const { raw } of clients.values()) raw.close();
      await Promise.all(endings.map((end) => end()));
    },
  };
}

function openMember(directory: string, { client }: Addresses): EtcdClient {
  const file = (name: string) => readFileSync(join(directory, "pki", "controller", name));
  const credentials = { ca: file("ca.crt"), certificate: file("tls.crt"), privateKey: file("tls.key") };
  return createEtcdClient({ hosts: [client], credentials });
}

/** The member that the platform runs, and restarts whenever it ends. */
function ownMember(platform: Platform, { name, client }: Addresses): EtcdMember {
  const signal = (what: NodeJS.Signals) => {
    const { etcd } = platform.processes();
    if (etcd !== undefined) killImmediately(etcd, what);
  };
  return {
    name,
    async lose() {
      const port = await occupyPort(Number(new URL(client).port), () => signal("SIGKILL"));
      return async () => {
        await port.release();
        await untilServes(platform, { name, client });
      };
    },
    pause() {
      signal("SIGSTOP");
      return () => signal("SIGCONT");
    },
  };
}

async function startMember(platform: Platform, addresses: Addresses, all: readonly Addresses[]) {
  const etcd = testProgram("etcd", "3.5");
  const directory = programDirectory("holdfast-etcd");
  const fileOf = (name: string) => {
    const path = join(directory, name);
    copyFileSync(join(platform.directory, "pki", "etcd", name), path);
    if (asRoot) chownSync(path, testUid, testUid);
    return path;
  };
  const flags = etcdFlags({
    ...addresses,
    data: join(directory, "data"),
    cluster: all.map(({ name, peer }) => `${name}=${peer}`).join(","),
    files: { ca: fileOf("ca.crt"), certificate: fileOf("tls.crt"), key: fileOf("tls.key") },
  });
  const argv = [etcd.executable("etcd"), ...flags, "--initial-cluster-state=existing"];
  const launch = etcd.launch({ argv, uid: testUid, binds: [directory], asRoot });
  let running = await startTemporaryProcess(launch, etcdServes);
  const member: EtcdMember = {
    name: addresses.name,
    async lose() {
      await running.end("SIGKILL");
      return async () => {
        running = await startTemporaryProcess(launch, etcdServes);
        await untilServes(platform, addresses);
      };
    },
    pause() {
      running.signal("SIGSTOP");
      return () => running.signal("SIGCONT");
    },
  };
  async function end(): Promise<void> {
    await running.end("SIGKILL");
    await rm(directory, { recursive: true, force: true });
  }
  return { member, end };
}

/** A linearizable read succeeds. */
async function untilServes(platform: Platform, addresses: Pick<Addresses, "name" | "client">): Promise<void> {
  const client = openMember(platform.directory, { ...addresses, peer: "" });
  try {
    await waitUntil(`${addresses.name} of etcd answers`, () =>
      client.call((call) => client.raw.kv.range({ key: Buffer.from("/") }, call)),
    );
  } finally {
    client.raw.close();
  }
}
