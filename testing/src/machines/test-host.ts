import type { Identity } from "@holdfast/common/identity.ts";
import { type Log, silentLog } from "@holdfast/common/log.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import { readHostFacts } from "@holdfast/compute/local/host-facts.ts";
import { createPublicAddresses } from "@holdfast/compute/local/public-addresses.ts";
import { readStorageTiers } from "@holdfast/compute/local/storage-tiers.ts";
import { type ConnectHostDeps, connectHost, type RemoteHost } from "@holdfast/compute/remote/connect-host.ts";
import { hostMethods, messageBytes } from "@holdfast/compute/remote/host-methods.ts";
import { createHostRpcs } from "@holdfast/compute/remote/host-rpcs.ts";
import { createMtlsListener } from "@holdfast/mtls/mtls-listener.ts";
import type { KeyWithCertificate } from "@holdfast/mtls/authority.ts";
import type { TestAuthority } from "../controller/test-authority.ts";

export const hostInstallation = "test";

/** A provider served over mTLS as by a host program, in this process. */
export interface TestHost {
  readonly port: number;
  /** Connects to the host as a controller, or with another certificate. */
  connect(identity?: KeyWithCertificate, overrides?: Partial<ConnectHostDeps>): Promise<RemoteHost>;
  /** Stops the host program; connections to it remain open. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/** The host's report of the pool of its roots. */
export const testRoots = { totalBytes: 3e10, freeBytes: 2e10, firstBytes: 1, fileSystem: "pool p", problem: "No." };

const hostIdentity: Identity = { kind: "host", id: "h-1" };

export async function startTestHost(
  provider: ComputeProvider,
  authority: TestAuthority,
  { port = 0, log = silentLog }: { port?: number; log?: Log } = {},
): Promise<TestHost> {
  const identity = fixed(await authority.identityOf(hostInstallation, hostIdentity));
  const trustBundle = () => authority.trustBundle;
  const listener = createMtlsListener({ host: "127.0.0.1", port, identity, trustBundle, messageBytes, log });
  const { name } = provider;
  const facts = () =>
    readHostFacts({
      provider: name,
      directory: "/",
      tiers: readStorageTiers(["fast"]),
      addressBlock: "127.99",
      imagesDir: "/nonexistent",
      publicAddresses: createPublicAddresses("/nowhere", undefined),
      version: "1.2.3",
      snapshotProblem: async () => "",
      lowPorts: false,
      virtualMachineProblem: "It has none.",
      rootStorageOf: async () => testRoots,
    });
  listener.addService(hostMethods, createHostRpcs({ installationId: hostInstallation, provider, facts, log }));
  const bound = await listener.listen();
  const opened: RemoteHost[] = [];
  let listening = true;
  return {
    port: bound,
    async connect(own, overrides = {}) {
      own ??= await authority.identityOf(hostInstallation, { kind: "controller", id: "c-1" });
      const remote = connectHost({
        hostId: hostIdentity.id,
        address: `127.0.0.1:${bound}`,
        installationId: hostInstallation,
        identity: fixed(own),
        trustBundle,
        provider: provider.name,
        hello: () => ({ controllers: [], authorityGeneration: 1 }),
        random: Math.random,
        connectTimeoutMs: 30_000,
        log,
        ...overrides,
      });
      opened.push(remote);
      return remote;
    },
    async stop() {
      listening = false;
      await listener.close();
    },
    async close() {
      for (const remote of opened) remote.close();
      if (listening) await listener.close();
    },
  };
}

function fixed(current: KeyWithCertificate) {
  return { current, subscribe: () => ({ close() {} }) };
}
