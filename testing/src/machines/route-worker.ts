import type { OtherHost, PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { createHostRoutes } from "@holdfast/compute/incus/host-routes.ts";
import { createMachineEdge, edgeConfig } from "@holdfast/compute/incus/machine-edge.ts";

/** Network of one host of two; runs in the network that stands for the host. */
export interface RouteWork {
  readonly block: string;
  /** Networks of the worker's machines. */
  readonly networks: readonly string[];
  readonly others: readonly OtherHost[];
  readonly rules: readonly PolicyRule[];
}

const { block, networks, others, rules } = JSON.parse(process.argv[2] ?? "") as RouteWork;
const signal = AbortSignal.timeout(120_000);
await createMachineEdge(edgeConfig(block, [], [])).apply(rules, signal);
process.stdout.write(JSON.stringify(await createHostRoutes(block, networks).apply(others, signal)));
