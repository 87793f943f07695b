import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import { silentLog } from "@holdfast/common/log.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import { readHostFacts } from "@holdfast/compute/local/host-facts.ts";
import { createPublicAddresses } from "@holdfast/compute/local/public-addresses.ts";
import { readStorageTiers } from "@holdfast/compute/local/storage-tiers.ts";
import { createHostTrust, type HostTrust } from "@holdfast/controller/fleet/host/host-trust.ts";
import { hostKind, type HostObject, newHost } from "@holdfast/controller/fleet/host/host.ts";
import { createAuthority, type Lifetimes } from "@holdfast/controller/kernel/pki/create-authority.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "@holdfast/controller/kernel/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import { openHostCredentials } from "@holdfast/host/host-credentials.ts";
import { joinHost } from "@holdfast/host/join-host.ts";
import { type ServedHost, serveHost } from "@holdfast/host/serve-host.ts";
import { freePorts } from "../platform/free-ports.ts";
import {
  installationId,
  startController,
  type TestController,
  type TestInstallation,
} from "../controller/test-fleet.ts";

/** One controller that accepts hosts, on a real etcd. */
export interface TestHosting {
  readonly controller: TestController;
  readonly trust: HostTrust;
  readonly hosts: Collection<HostObject>;
  /** Changes the host's object, or creates it. */
  write(hostId: string, change?: (host: HostObject) => HostObject, address?: string): Promise<HostObject>;
  /** A join file for the host, its token in the store. */
  invite(hostId: string, address?: string): Promise<JoinFile>;
  /** A directory for a host's certificate. */
  newDirectory(): Promise<string>;
  /** Retries controllers that respond with errors for half a minute, or for `withinMs`. */
  join(join: JoinFile, stateDir: string, addressBlock: string, withinMs?: number): Promise<void>;
  /** A host that joined and listens, in this process. */
  serve(hostId: string, addressBlock: string, provider: ComputeProvider): Promise<ServedHost & { stateDir: string }>;
  close(): Promise<void>;
}

const clock = systemClock;

export async function startHosting(
  installation: TestInstallation,
  lifetimes: Partial<Lifetimes> = {},
): Promise<TestHosting> {
  const store = createEtcdStore({ hosts: [installation.etcd.url], log: silentLog });
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", installation.masterKey]]) });
  const authority = await createAuthority({ store, sealer, installationId, clock, log: silentLog, lifetimes });
  const hosts = createCollection(store, hostKind);
  await hosts.ready;
  const trust = await createHostTrust({
    installationId,
    store,
    hosts,
    controllerRegistry: { id: "c-1", controllers: () => controller?.controllerRegistry.controllers() ?? [] },
    authority,
    sealer,
    clock,
    random: Math.random,
    log: silentLog,
    storeMayBeBehind: () => false,
  });
  const controller: TestController = await startController(installation, "c-1", {
    lifetimes,
    services: () => [trust.service],
  });
  const closing: (() => Promise<unknown> | void)[] = [];

  async function write(hostId: string, change = (host: HostObject) => host, address = ""): Promise<HostObject> {
    const before = await hosts.getCurrent(hostId);
    const spec = { zone: "local", address, memoryOvercommit: null, diskOvercommit: null };
    const after = change(before?.object ?? newHost(hostId, spec, clock.now()));
    const key = keyOf(hostKind, hostId);
    const done = await store.commit({
      conditions: [{ key, modRevision: before?.modRevision ?? 0n }],
      puts: [{ key, value: JSON.stringify(after) }],
      deletes: [],
    });
    if (!done.committed) return write(hostId, change, address);
    await hosts.untilRevision(done.revision, 60_000);
    return after;
  }

  async function invite(hostId: string, address = "127.0.0.1:1"): Promise<JoinFile> {
    const { enrollment, file } = await trust.invite(hostId, address);
    await write(hostId, (host) => ({ ...host, status: { ...host.status, enrollment } }), address);
    return file;
  }

  async function newDirectory(): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), "holdfast-host-"));
    closing.push(() => rm(directory, { recursive: true, force: true }));
    return directory;
  }

  function joined(file: JoinFile, stateDir: string, addressBlock: string, withinMs = 30_000): Promise<void> {
    const deps = { stateDir, join: file, addressBlock, now: clock.now, random: Math.random, withinMs };
    return joinHost(deps, new AbortController().signal);
  }

  return {
    controller,
    trust,
    hosts,
    write,
    invite,
    newDirectory,
    join: joined,
    async serve(hostId, addressBlock, provider) {
      const stateDir = await newDirectory();
      const [port = 0] = await freePorts(1);
      await joined(await invite(hostId, `127.0.0.1:${port}`), stateDir, addressBlock);
      const credentials = await openHostCredentials({ stateDir, clock, random: Math.random, log: silentLog });
      const { name } = provider;
      const facts = () =>
        readHostFacts({
          provider: name,
          directory: stateDir,
          tiers: readStorageTiers(["fast"]),
          addressBlock,
          imagesDir: stateDir,
          publicAddresses: createPublicAddresses("/nowhere", undefined),
          version: "1.2.3",
          snapshotProblem: async () => "",
          lowPorts: false,
          virtualMachineProblem: "It has none.",
          rootStorageOf: async () => undefined,
        });
      const served = await serveHost({ credentials, provider, facts, host: "127.0.0.1", port, log: silentLog });
      const close = async () => {
        credentials.close();
        await served.close();
      };
      closing.push(close);
      return { port: served.port, stateDir, close };
    },
    async close() {
      for (const close of closing.reverse()) await close();
      trust.close();
      await controller.close();
      for (const part of [hosts, authority]) part.close();
      await store.close();
    },
  };
}
