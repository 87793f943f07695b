import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { type Samples, SamplesAckSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSampleSender } from "./sample-sender.ts";
import { openSampleSpool, type SampleSpool } from "./sample-spool.ts";

let directory = "";
let spool: SampleSpool;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-sender-"));
  spool = await openSampleSpool(join(directory, "samples"), 1_000);
});
afterEach(async () => {
  await spool.close();
  await rm(directory, { recursive: true });
});

/** A sender and its controller. */
function open() {
  const sent: Samples[] = [];
  const controller = { there: true };
  const sender = createSampleSender({
    spool,
    send(frame) {
      if (controller.there && frame.case === "samples") sent.push(frame.value);
      return controller.there;
    },
    random: () => 0,
    log: silentLog,
  });
  const acknowledge = (change: Omit<MessageInitShape<typeof SamplesAckSchema>, "$typeName"> = {}) =>
    sender.acknowledged(create(SamplesAckSchema, { batch: sent.at(-1)?.batch ?? 0n, stored: true, ...change }));
  const take = (from: number, to: number) => {
    for (let index = from; index < to; index += 1) sender.take({ timeMs: index, metricNumbers: [1], values: [index] });
  };
  const timesOf = (samples: Samples | undefined) => samples?.samples.map(({ timeMs }) => Number(timeMs)) ?? [];
  return { sent, controller, sender, acknowledge, take, timesOf };
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

test("one batch is in flight at a time; the next has the samples taken since", () => {
  const { sent, acknowledge, take, timesOf } = open();
  take(0, 5);
  expect(sent.map(timesOf)).toEqual([[0]]);
  acknowledge();
  expect(sent.map(timesOf)).toEqual([[0], [1, 2, 3, 4]]);
  acknowledge();
  expect(spool.size).toBe(0);
});

test("samples of an outage are sent in order, a hundred at a time", () => {
  const { sent, controller, sender, acknowledge, take, timesOf } = open();
  controller.there = false;
  take(0, 250);
  expect(sent).toEqual([]);
  controller.there = true;
  sender.opened();
  for (let batch = 0; batch < 3; batch += 1) acknowledge();
  expect(sent.map(timesOf)).toEqual([range(0, 100), range(100, 200), range(200, 250)]);
  expect(spool.size).toBe(0);
});

test("after a broken session unacknowledged samples are sent again, and a late ack is ignored", () => {
  const { sent, sender, acknowledge, take, timesOf } = open();
  take(0, 1);
  const first = sent.at(-1)?.batch ?? 0n;
  sender.opened();
  take(1, 2);
  acknowledge({ batch: first });
  expect(spool.size).toBe(2);
  expect(sent.map(timesOf)).toEqual([[0], [0]]);
  acknowledge();
  expect(sent.map(timesOf)).toEqual([[0], [0], [1]]);
});

test("rejected samples are sent again after the requested delay; refused ones are not", async () => {
  const { sent, acknowledge, take } = open();
  take(0, 1);
  acknowledge({ stored: false, retryMs: 20 });
  take(1, 2);
  expect(sent).toHaveLength(1);
  await expect.poll(() => sent.length).toBe(2);
  acknowledge({ refused: 1, reason: "too old" });
  expect(spool.size).toBe(0);
});
