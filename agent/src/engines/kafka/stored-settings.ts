import { describeConfigs, incrementalAlterConfigs } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";

/** ConfigResource.Type, DescribeConfigsResponse.ConfigSource and AlterConfigOp.OpType. */
export const resourceTypes = { topic: 2, broker: 4 } as const;
export const settingSources = { topic: 1, broker: 2 } as const;
const operations = { set: 0, remove: 1 } as const;

/** A topic or a broker, whose own settings are part of the cluster's metadata. */
interface ConfiguredResource {
  readonly type: (typeof resourceTypes)[keyof typeof resourceTypes];
  readonly name: string;
}

export interface StoredSetting {
  readonly value: string;
  /** One of `settingSources`, or another code for values from elsewhere. */
  readonly source: number;
}

/** A value, or null to remove the resource's own one. */
export type SettingChange = readonly [name: string, value: string | null];

/** Values that apply to the resource: of all settings without keys. Only a broker itself describes its settings. */
export async function describeSettings(
  session: Connection,
  resource: ConfiguredResource,
  keys: readonly string[] | null,
): Promise<Map<string, StoredSetting>> {
  const answer = await session.call(describeConfigs, {
    resources: [{ ...resource, keys: keys === null ? null : [...keys] }],
    includeSynonyms: false,
    includeDocumentation: false,
  });
  const [found] = answer.results;
  if (found === undefined) throw new Error("the broker did not describe its settings");
  requireSuccess("DescribeConfigs", found);
  return new Map(
    found.configs.flatMap(({ name, value, source }) => (value === null ? [] : [[name, { value, source }]])),
  );
}

export async function alterSettings(
  session: Connection,
  resource: ConfiguredResource,
  changes: readonly SettingChange[],
): Promise<void> {
  if (changes.length === 0) return;
  const configs = changes.map(([name, value]) => ({
    name,
    operation: value === null ? operations.remove : operations.set,
    value,
  }));
  const request = { resources: [{ ...resource, configs }], validateOnly: false };
  const { results } = await session.call(incrementalAlterConfigs, request);
  for (const result of results) requireSuccess("IncrementalAlterConfigs", result);
}
