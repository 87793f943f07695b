import { expect, test } from "vitest";
import { explainFailure } from "./log.ts";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["java.lang.IllegalArgumentException: Failed to parse value [x] for setting [thread_pool.search.queue_size]", "configuration", "thread_pool.search.queue_size"],
  ["2026-11-28 21:07:56,703 ERROR [x] java.io.IOException: No space left on device",                            "disk_full",     undefined],
  ["java.lang.OutOfMemoryError: Java heap space",                                                               "memory",        undefined],
  ["BindHttpException[Failed to bind to 10.0.0.1:19200]; nested: BindException[Address already in use]",        "port_busy",     undefined],
  ["org.apache.lucene.index.CorruptIndexException: checksum failed",                                            "data_damaged",  undefined],
  ["2026-11-28 21:07:56,703 ERROR [x] something else",                                                          "unknown",       undefined],
])("%s is explained", (line, cause, parameter) => {
  const output = `2026-11-28 21:07:39,282 INFO [Node] starting\n${line}\n\tat org.opensearch.node.Node.<init>(Node.java:1)`;
  const failure = explainFailure(output);
  expect(failure).toMatchObject({ cause, parameter });
  expect(failure.message).not.toMatch(/^[a-z.]+\.\w+(Exception|Error): /);
});
