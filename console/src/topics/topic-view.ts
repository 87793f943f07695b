import type { NewTopic, TopicChange } from "@holdfast/sdk/requests.ts";
import type { ConsumerGroup, Topic, TopicPartition } from "@holdfast/sdk/responses.ts";
import type { Tone } from "../tone.ts";

/** The input of the form for a topic. */
export interface TopicInput {
  readonly name: string;
  /** Number of partitions; empty for the default of a new topic. */
  readonly partitions: string;
  /** Copies of each partition; empty for the default of a new topic. */
  readonly copies: string;
  /** Settings of the topic: a line "name=value" each. */
  readonly settings: string;
}

/** Settings as text: a line "name=value" each, by name. */
export function settingsText(config: Topic["config"]): string {
  return Object.entries(config)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join("\n");
}

function settingsOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
}

/** The first line that is no setting, as a sentence; undefined without one. */
export function settingsFault(text: string): string | undefined {
  const line = text.split("\n").find((each) => each.trim() !== "" && !each.includes("="));
  return line === undefined ? undefined : `${line.trim()} has no value: write ${line.trim()}=value.`;
}

export function newTopicOf({ name, partitions, copies, settings }: TopicInput): NewTopic {
  const config = settingsOf(settings);
  return {
    name: name.trim(),
    ...(partitions !== "" && { partitions: Number(partitions) }),
    ...(copies !== "" && { replication_factor: Number(copies) }),
    ...(Object.keys(config).length > 0 && { config }),
  };
}

/** The fields that the form changes; null for a setting without a line, whose value is the service's again. */
export function topicChangeOf({ partitions, settings }: TopicInput, topic: Topic): TopicChange {
  const config = settingsOf(settings);
  const removed = Object.keys(topic.config).filter((name) => !Object.hasOwn(config, name));
  const current = new Map(Object.entries(topic.config));
  const changed = Object.entries(config).filter(([name, value]) => current.get(name) !== value);
  const change = Object.fromEntries([...changed, ...removed.map((name) => [name, null] as const)]);
  return {
    ...(Number(partitions) !== topic.partitions && { partitions: Number(partitions) }),
    ...(Object.keys(change).length > 0 && { config: change }),
  };
}

/** State of a partition by its leader and its copies in sync: "in sync", "1 of 3 in sync", "no leader". */
export function partitionState({ leader, replicas, in_sync: inSync }: TopicPartition): {
  readonly text: string;
  readonly tone: Tone;
} {
  if (leader === null) return { text: "no leader", tone: "bad" };
  if (inSync.length === replicas.length) return { text: "in sync", tone: "good" };
  return { text: `${inSync.length} of ${replicas.length} in sync`, tone: "warn" };
}

// biome-ignore format: a table, aligned so that it reads as one
const groupStates: ReadonlyMap<string, readonly [text: string, tone: Tone]> = new Map([
  ["Empty",               ["no members",     "none"]],
  ["Stable",              ["consumes",       "good"]],
  ["PreparingRebalance",  ["rebalances",     "busy"]],
  ["CompletingRebalance", ["rebalances",     "busy"]],
  ["Dead",                ["ended",          "bad"]],
]);

export function groupState({ state }: Pick<ConsumerGroup, "state">): { readonly text: string; readonly tone: Tone } {
  const [text, tone] = groupStates.get(state) ?? [state, "none"];
  return { text, tone };
}

/** The reason why the offsets of a group cannot be changed now; undefined if they can. */
export function groupRefusal({ state }: Pick<ConsumerGroup, "state">): string | undefined {
  return state === "Empty" || state === "Dead" ? undefined : "Stop the members of the group first.";
}

/** The position of a reset as the API has it; a time of the form is local. */
export function positionOf(position: string, time: string): string {
  if (position !== "time") return position;
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
