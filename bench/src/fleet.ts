import { parseArgs } from "node:util";
import { defaultLimits } from "@holdfast/controller/fleet/fleet-limits.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { measureChanges } from "./fleet/changes.ts";
import { type BenchInstallation, createBenchInstallation } from "./fleet/installation.ts";
import { type MessageCost, measureMessageCost } from "./fleet/message-cost.ts";
import { measureOutage } from "./fleet/outage.ts";
import { measureSteady } from "./fleet/steady.ts";
import { measureStorm } from "./fleet/storm.ts";
import { median, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";
import { loadCore, type PeerProcess, pin, startPeer } from "./support/peer-process.ts";

// A fleet of agents with the real protocol, certificates and rates, on real controllers and a real etcd: cost at rest,
// latency of a change, cost of a second controller, and time until all agents are back after a controller's death.
// Controllers and their peers have one core; agents, etcd and this program the other.
const { values } = parseArgs({
  options: {
    agents: { type: "string", default: "2000" },
    "steady-seconds": { type: "string", default: "30" },
    "change-seconds": { type: "string", default: "5" },
    "outage-seconds": { type: "string", default: "30" },
    storms: { type: "string", default: "3" },
    passes: { type: "string", default: "3" },
    rounds: { type: "string", default: "10" },
  },
});
const agents = Number(values.agents);
const steadySeconds = Number(values["steady-seconds"]);
const storms = Number(values.storms);
const stormsMs: number[] = [];

printHost();
pin(process.pid, loadCore);
const installation = await createBenchInstallation(agents);
try {
  const trust = await measureFleet(installation);
  await measurePeers(installation, trust);
} finally {
  await installation.close();
}

async function measureFleet({ etcd, machineIds, ...parts }: BenchInstallation): Promise<PeerProcess> {
  let current = await parts.startController("controller-0");
  const startedAt = performance.now();
  const simulated = await parts.startAgents(current.ready, String(current.ready["address"]), current);
  print(`${agents} machines enrolled, 10 at a time`, `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  const alone = await measureSteady("one controller", [current], etcd.url, steadySeconds);
  await measureChanges(current, simulated, machineIds, etcd.url, Number(values["change-seconds"]));

  for (let storm = 1; storm <= storms; storm += 1) {
    const next = await parts.startController(`controller-${storm}`);
    await waitUntil(
      "the second controller knows the machines",
      async () => (await next.query<number>({ query: "cachedMachines" })) === agents,
    );
    // An agent that knows only dead controllers would need its compute provider, which does not exist here.
    await waitUntil("every agent knows the second controller", () => parts.allKnow(String(next.ready["address"])), {
      // Each agent stores it on a disk that all of them share here.
      withinMs: 600_000,
    });
    if (storm === 1) {
      const two = await measureSteady("two controllers", [current, next], etcd.url, steadySeconds);
      const more = two.cores.reduce((sum, core) => sum + core, 0) - (alone.cores[0] ?? 0);
      print(
        "cost of the second, without agents",
        `${(100 * more).toFixed(1)} % of a core, ${two.rssMb[1]?.toFixed(0)} MB`,
      );
      await measureOutage(etcd, [current, next], simulated, agents, Number(values["outage-seconds"]));
    }
    stormsMs.push(
      await measureStorm("a controller dies", { victim: current, survivor: next, agents: simulated }, agents, etcd.url),
    );
    current = next;
  }
  await simulated.end();
  return current;
}

/** Measures the same agents and certificates with servers that implement only the stream. */
async function measurePeers(parts: BenchInstallation, controller: PeerProcess): Promise<void> {
  const identity = await controller.query<{ key: string; cert: string; ca: string }>({ query: "peerIdentity" });
  const rawMs: number[] = [];
  for (let storm = 0; storm < storms; storm += 1) {
    const survivor = await startPeer("raw-http2", identity);
    const controllers = [String(survivor.ready["address"])];
    const fleetReturnMs = agents * defaultLimits.welcomeMs;
    const victim = await startPeer("raw-http2", { ...identity, controllers, fleetReturnMs });
    const simulated = await parts.startAgents(controller.ready, String(victim.ready["address"]));
    rawMs.push(await measureStorm("a raw http2 server dies", { victim, survivor, agents: simulated }, agents));
    await simulated.end();
    await survivor.end();
  }
  print("storm: Holdfast to raw http2, medians", times(median(stormsMs) / median(rawMs)), "<= 1.3x");

  await controller.end();
  const servers = {
    // The first agent to open its stream is silent until the last one has opened its own.
    holdfast: (pass: number) => parts.startController(`controller-fresh-${pass}`, { silenceMs: 600_000 }),
    "connect-node": () => startPeer("connect-node", identity),
    "raw-http2": () => startPeer("raw-http2", identity),
  };
  const costs: Record<keyof typeof servers, MessageCost[]> = { holdfast: [], "connect-node": [], "raw-http2": [] };
  for (let pass = 0; pass < Number(values.passes); pass += 1) {
    for (const name of ["holdfast", "connect-node", "raw-http2"] as const) {
      const server = await servers[name](pass);
      costs[name].push(await measureMessageCost(server, parts, Number(values.rounds)));
      await server.end();
    }
  }
  printCosts("CPU a message", "us", "<= 0.25x; <= 1.4x", ({ cpuUs }) => cpuUs);
  printCosts("memory a stream", "KB", "<= 0.55x; <= 1.4x", ({ streamKb }) => streamKb);

  function printCosts(label: string, unit: string, bar: string, of: (cost: MessageCost) => number): void {
    const all = Object.values(costs).map((each) => median(each.map(of)).toFixed(1));
    print(`${label}: ${Object.keys(costs).join(" / ")}`, `${all.join(" / ")} ${unit}`);
    const toHoldfast = (peer: readonly MessageCost[]) => {
      const { median: middle, min, max } = ratios(costs.holdfast.map(of), peer.map(of));
      return `${times(middle)} (${times(min)} - ${times(max)})`;
    };
    print(
      "  to connect-node; to raw http2",
      `${toHoldfast(costs["connect-node"])}; ${toHoldfast(costs["raw-http2"])}`,
      bar,
    );
  }
}
