import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestEtcd, type TestEtcd } from "@holdfast/test/support/controller/etcd.ts";
import type { AgentIdentity } from "@holdfast/test/support/machines/test-agent.ts";
import { type PeerProcess, startPeer } from "../support/peer-process.ts";
import { type SimulatedAgents, startSimulatedAgents } from "./simulated-agents.ts";

/** One etcd with any number of controllers and processes full of agents. Controllers share one core, agents have the other. */
export interface BenchInstallation {
  readonly etcd: TestEtcd;
  readonly machineIds: readonly string[];
  startController(id: string, limits?: { readonly silenceMs: number }): Promise<PeerProcess>;
  /**
   * All agents, dialling these; resolves when each had a stream. With a controller given they enroll with it first, a few at a
   * time; without, they use the certificates that they have.
   */
  startAgents(
    trust: Readonly<Record<string, unknown>>,
    address: string,
    enrolledBy?: PeerProcess,
  ): Promise<SimulatedAgents>;
  /** Has every agent on its disk that there is a controller at this host:port? */
  allKnow(address: string): boolean;
  /** The certificate that an agent bought. */
  identityOf(machineId: string): AgentIdentity;
  close(): Promise<void>;
}

/** So that they do not time each other out before there is anything to measure. */
const atOnce = 10;
const mostTries = 20;

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
          if (tries === mostTries) throw new Error(`no stream after ${tries} tries: ${ids.join(", ")}`);
          // On a busy machine the store may take too long: the next try asks again.
          const asking = enrolledBy === undefined ? [] : enrolledBy.ask<string[]>({ ask: "machines", ids });
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
        const kept = join(directory, id, "controllers.json");
        return existsSync(kept) && readFileSync(kept, "utf8").includes(`"${address}"`);
      }),
    identityOf(machineId) {
      const kept = JSON.parse(readFileSync(join(directory, machineId, "identity.json"), "utf8"));
      return { key: kept.privateKey, chain: kept.certificate, trustBundle: kept.trustBundle };
    },
    async close() {
      for (const process of running) await process.end();
      await etcd.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
