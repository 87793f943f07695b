import type { PeerHost, PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { createHostPaths } from "@holdfast/compute/incus/host-paths.ts";
import { createMachineEdge, edgeConfig } from "@holdfast/compute/incus/machine-edge.ts";

/** Network of one host of two; runs in the network that stands for the host. */
export interface PathWork {
  readonly block: string;
  /** Networks of the worker's machines. */
  readonly networks: readonly string[];
  readonly peers: readonly PeerHost[];
  readonly rules: readonly PolicyRule[];
}

const { block, networks, peers, rules } = JSON.parse(process.argv[2] ?? "") as PathWork;
const signal = AbortSignal.timeout(120_000);
await createMachineEdge(edgeConfig(block, [], [])).apply(rules, signal);
process.stdout.write(JSON.stringify(await createHostPaths(block, networks).apply(peers, signal)));
