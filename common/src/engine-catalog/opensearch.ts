import { opensearchMetrics } from "../metrics/opensearch-metrics.ts";
import { clamp } from "./clamp.ts";
import type { EngineRow, EngineSizing, PlanSize } from "./engine-row.ts";
import { opensearchManaged, opensearchParameters } from "./opensearch-parameters.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;
/** Memory of keeper, agent and front. */
const platformBytes = 256 * mib;

const opensearchSizing = { parameters: () => ({}) } satisfies EngineSizing;

/** Heap of a member; the other memory is the page cache, from which searches read. */
export function opensearchHeapBytes({ memoryBytes }: PlanSize): number {
  return Math.floor(clamp((memoryBytes - platformBytes) / 2, 512 * mib, 31 * gib) / mib) * mib;
}

/** Maximum number of client connections of a member. */
export function opensearchClients({ memoryBytes }: PlanSize): number {
  return Math.round(clamp((memoryBytes / gib) * 250, 250, 8_000));
}

/** The engine's plugin for models. */
export const mlPlugin = "opensearch-ml";
const neuralPlugin = "opensearch-neural-search";

export const opensearch: EngineRow = {
  title: "OpenSearch",
  port: 9200,
  versions: ["2.19"],
  defaultVersion: "2.19",
  topology: "peers",
  metrics: opensearchMetrics,
  parameters: opensearchParameters,
  managedParameters: opensearchManaged,
  sizing: opensearchSizing,
  extensions: [],
  hasDatabases: false,
  hasIndices: true,
  features: [
    { name: "models", description: "Machine learning models that run in the engine", plugins: [mlPlugin] },
    {
      name: "sparse_encoding",
      description: "Ingest processor that writes weights of tokens, computed by a model",
      plugins: [mlPlugin, neuralPlugin],
    },
    {
      name: "neural_sparse",
      description: "Queries by weights of tokens",
      plugins: [mlPlugin, neuralPlugin],
    },
  ],
  hasQueues: false,
  hasQueryStatistics: false,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
  backups: { kind: "snapshot", restorePoints: "snapshots", increments: false, fork: false },
};
