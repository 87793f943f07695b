import { expect, test } from "vitest";
import { parseLog4jLine as parseLog } from "../log4j-line.ts";
import { explainFailure } from "./log.ts";

test("a line has its time in UTC, its level and its message; a line of a stack trace belongs to the one before", () => {
  expect(parseLog("2026-11-28 21:07:52,186 WARN [QuorumController id=1] The log is empty.")).toEqual({
    time: new Date("2026-11-28T21:07:52.186Z"),
    level: "warning",
    message: "[QuorumController id=1] The log is empty.",
  });
  expect(parseLog("\tat kafka.Kafka$.main(Kafka.scala:92)")).toBeUndefined();
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["org.apache.kafka.common.config.ConfigException: Invalid value 0 for configuration num.network.threads: Value must be at least 1", "configuration", "num.network.threads"],
  ["2026-11-28 21:07:56,703 ERROR java.io.IOException: No space left on device",                                                    "disk_full",     undefined],
  ["java.lang.OutOfMemoryError: Java heap space",                                                                                   "memory",        undefined],
  ["org.apache.kafka.common.KafkaException: Socket server failed to bind to 10.0.0.1:19092: Address already in use.",               "port_busy",     undefined],
  ["org.apache.kafka.common.errors.CorruptRecordException: Found record size 0",                                                    "data_damaged",  undefined],
  ["2026-11-28 21:07:56,703 ERROR something else",                                                                                  "unknown",       undefined],
])("%s is explained", (line, cause, parameter) => {
  const output = `2026-11-28 21:07:39,282 INFO starting\n${line}\n\tat kafka.Kafka$.main(Kafka.scala:92)`;
  const failure = explainFailure(output);
  expect(failure).toMatchObject({ cause, parameter });
  expect(failure.message).not.toMatch(/Exception: |Error: /);
});
