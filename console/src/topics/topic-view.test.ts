import type { Topic, TopicPartition } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import {
  groupRefusal,
  groupState,
  newTopicOf,
  partitionState,
  positionOf,
  settingsFault,
  settingsText,
  topicChangeOf,
} from "./topic-view.ts";

const topic = partial<Topic>({
  name: "orders",
  partitions: 6,
  config: { "retention.ms": "86400000", "cleanup.policy": "delete" },
});
const input = { name: "orders", partitions: "6", copies: "", settings: settingsText(topic.config) };

test("a new topic has only what the form names", () => {
  expect(newTopicOf({ name: " orders ", partitions: "", copies: "", settings: "" })).toEqual({ name: "orders" });
  expect(newTopicOf({ name: "a", partitions: "3", copies: "2", settings: "retention.ms = 1\n\nx=a=b" })).toEqual({
    name: "a",
    partitions: 3,
    replication_factor: 2,
    config: { "retention.ms": "1", x: "a=b" },
  });
});

test.each([
  [{}, {}],
  [{ partitions: "12" }, { partitions: 12 }],
  [{ settings: "retention.ms=1\ncleanup.policy=delete" }, { config: { "retention.ms": "1" } }],
  [{ settings: "retention.ms=86400000" }, { config: { "cleanup.policy": null } }],
  [{ settings: "" }, { config: { "cleanup.policy": null, "retention.ms": null } }],
])("the form with %j sends %j", (change, body) => expect(topicChangeOf({ ...input, ...change }, topic)).toEqual(body));

test("a line without a value is refused", () => {
  expect(settingsFault("a=1\nretention.ms")).toBe("retention.ms has no value: write retention.ms=value.");
  expect(settingsFault("a=1\n")).toBeUndefined();
});

test.each([
  [1, [1, 2, 3], [1, 2, 3], "in sync", "good"],
  [1, [1, 2, 3], [1], "1 of 3 in sync", "warn"],
  [null, [1], [], "no leader", "bad"],
])("a partition with leader %s, replicas %j and %j in sync is %s", (leader, replicas, inSync, text, tone) =>
  expect(partitionState(partial<TopicPartition>({ leader, replicas, in_sync: inSync }))).toEqual({ text, tone }),
);

test("the offsets of a group without members can be changed", () => {
  expect(groupRefusal({ state: "Empty" })).toBeUndefined();
  expect(groupRefusal({ state: "Stable" })).toBe("Stop the members of the group first.");
  expect(groupState({ state: "Stable" })).toEqual({ text: "consumes", tone: "good" });
  expect(groupState({ state: "Later" })).toEqual({ text: "Later", tone: "none" });
});

test.each([
  ["earliest", "", "earliest"],
  ["time", "2030-02-01T08:30:00Z", "2030-02-01T08:30:00.000Z"],
  ["time", "", ""],
])("the position %s with the time %j is %j", (position, time, text) => expect(positionOf(position, time)).toBe(text));
