import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestEtcd, type TestEtcd } from "@holdfast/test/support/etcd.ts";
import type { AgentIdentity } from "@holdfast/test/support/test-agent.ts";
import { loadCore, type PeerProcess, startPeer } from "../support/peer-process.ts";

/** One etcd with any number of controllers and one process full of agents. Controllers share one core, agents have the other. */
export interface BenchInstallation {
  readonly etcd: TestEtcd;
  readonly machineIds: readonly string[];
  startController(id: string): Promise<PeerProcess>;
  /** Makes the machines' entries and what enrols them. */
  makeMachines(controller: PeerProcess): Promise<void>;
  /** All agents, dialling these; resolves when each had a stream. */
  startAgents(trust: Readonly<Record<string, unknown>>, controllers: readonly string[]): Promise<PeerProcess>;
  /** The certificate that an agent bought. */
  identityOf(machineId: string): AgentIdentity;
  close(): Promise<void>;
}

const atOnce = 50;

export async function createBenchInstallation(machines: number): Promise<BenchInstallation> {
  const etcd = await startTestEtcd();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-fleet-"));
  const masterKey = randomBytes(32).toString("base64");
  const machineIds = Array.from({ length: machines }, (_, index) => `machine-${index}`);
  const running = new Set<PeerProcess>();
  const started = (process: PeerProcess) => {
    running.add(process);
    return process;
  };
  return {
    etcd,
    machineIds,
    startController: async (id) =>
      started(await startPeer("controller", { id, etcdUrl: etcd.url, masterKey, directory })),
    async makeMachines(controller) {
      const made: { id: string; token: string }[] = [];
      for (let from = 0; from < machines; from += atOnce) {
        const ids = machineIds.slice(from, from + atOnce);
        const tokens = await controller.ask<string[]>({ ask: "machines", ids });
        made.push(...ids.map((id, index) => ({ id, token: tokens[index] ?? "" })));
      }
      writeFileSync(join(directory, "machines.json"), JSON.stringify(made), { mode: 0o600 });
    },
    startAgents: async ({ installationId, fingerprint }, controllers) =>
      started(await startPeer("agents", { directory, installationId, fingerprint, controllers }, loadCore)),
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
