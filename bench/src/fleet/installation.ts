import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import type { AgentIdentity } from "@holdfast/testing/machines/test-agent.ts";
import { type PeerProcess, startPeer } from "../support/peer-process.ts";
import { type SimulatedAgents, startSimulatedAgents } from "./simulated-agents.ts";

/**
 * One etcd with any number of controllers and processes full of agents. Controllers share one core, agents have the
 * other.
 */
export interface BenchInstallation {
  readonly etcd: TestEtcd;
  readonly machineIds: readonly string[];
  startController(id: string, limits?: { readonly silenceMs: number }): Promise<PeerProcess>;
  /**
   * Starts all agents with these controllers; resolves when each had a stream. With `enrolledBy` they enroll at that
   * controller first, a few at a time; without, they use the certificates that they have.
   */
  startAgents(
    trust: Readonly<Record<string, unknown>>,
    address: string,
    enrolledBy?: PeerProcess,
  ): Promise<SimulatedAgents>;
  /** True if every agent has stored a controller at this host:port. */
  allKnow(address: string): boolean;
  /** The certificate that an agent obtained. */
  identityOf(machineId: string): AgentIdentity;
  close(): Promise<void>;
}

/** Number of concurrent enrollments; more would cause time-outs. */
const atOnce = 10;
const maxTries = 20;

export async function createBenchInstallation(machines: number): Promise<BenchInstallation> {
  const etcd = await startTestEtcd();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-fleet-"));
  const masterKey = randomBytes(32).toString("base64");
  const machineIds = Array.from({ length: machines }, (_, index) => `machine-${index}`);
  const tokenOf = new Map<string, string>();
  const running = new Set<{ end(): Promise<void> }>();
  const started = <T extends { end(): Promise<void> }>(process: T) => {
    running.add(process);
    return process;
  };
  return {
    etcd,
    machineIds,
    startController: async (id, limits) =>
      started(await startPeer("controller", { id, etcdUrl: etcd.url, masterKey, directory, ...limits })),
    async startAgents({ installationId, fingerprint }, address, enrolledBy) {
      const settings = { directory, installationId, fingerprint, controllers: [address] };
      const agents = started(await startSimulatedAgents(settings, machineIds));
      for (let from = 0; from < machines; from += atOnce) {
        let ids = machineIds.slice(from, from + atOnce);
        for (let tries = 0; ids.length > 0; tries += 1) {
          if (tries === maxTries) throw new Error(`no stream after ${tries} tries: ${ids.join(", ")}`);
          // On a busy machine the store may time out: the next try repeats the query.
          const asking = enrolledBy === undefined ? [] : enrolledBy.query<string[]>({ query: "machines", ids });
          const tokens = await Promise.resolve(asking).catch(() => undefined);
          if (tokens === undefined) continue;
          for (const [index, id] of ids.entries()) tokenOf.set(id, tokens[index] ?? tokenOf.get(id) ?? "");
          ids = await agents.start(ids.map((id) => ({ id, token: tokenOf.get(id) ?? "" })));
        }
      }
      return agents;
    },
    allKnow: (address) =>
      machineIds.every((id) => {
        const stored = join(directory, id, "controllers.json");
        return existsSync(stored) && readFileSync(stored, "utf8").includes(`"${address}"`);
      }),
    identityOf(machineId) {
      const stored = JSON.parse(readFileSync(join(directory, machineId, "identity.json"), "utf8"));
      return { key: stored.privateKey, chain: stored.certificate, trustBundle: stored.trustBundle };
    },
    async close() {
      for (const process of running) await process.end();
      await etcd.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
