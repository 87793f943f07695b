import { expect, test } from "vitest";
import { fetchById, listOffsets } from "../protocol/apis.ts";
import { Reader, Writer } from "../protocol/codec.ts";
import type { Connection } from "../protocol/connection.ts";
import { errorCodes, isTransient } from "../protocol/protocol-error.ts";
import { singleRecord } from "../protocol/record-batch.ts";
import type { LeaderSessions } from "./leader-sessions.ts";
import { createPartitionReader } from "./partition-reader.ts";

/** A leader at the moment of one call. */
interface State {
  /** Records of its log. */
  readonly records: number;
  /** Records that it knows to be committed: fewer after an election, until its followers have fetched. */
  readonly stable: number;
  /** False for a leader that does not know yet what was committed before its election. */
  readonly knowsEnd: boolean;
}

const settled: State = { records: 4, stable: 4, knowsEnd: true };
const recordsPerResponse = 2;
const topicId = Buffer.alloc(16, 1).toString("base64url");

function batch(offset: number): Buffer {
  const bytes = singleRecord(Buffer.from(`record ${offset}`), 0);
  bytes.writeBigInt64BE(BigInt(offset));
  return bytes;
}

function listed({ stable, knowsEnd }: State): Buffer {
  const response = new Writer();
  const errorCode = knowsEnd ? 0 : errorCodes.offsetNotAvailable;
  const partitions = [{ index: 0, errorCode, timestamp: -1, offset: stable, leaderEpoch: 0 }];
  listOffsets.response.write(response, { throttleMs: 0, topics: [{ name: "orders", partitions }] });
  return response.bytes();
}

function fetched({ records, stable }: State, requested: Buffer): Buffer {
  const [topic] = fetchById.request.read(new Reader(requested)).topics;
  const from = topic?.partitions[0]?.fetchOffset ?? 0;
  const offsets = Array.from({ length: recordsPerResponse }, (_, at) => from + at);
  const visible = offsets.filter((offset) => offset < Math.min(records, stable)).map(batch);
  const state = {
    highWatermark: stable,
    lastStableOffset: stable,
    startOffset: 0,
    aborted: null,
    preferredReplica: -1,
  };
  const partitions = [{ index: 0, errorCode: 0, ...state, records: Buffer.concat(visible) }];
  const response = new Writer();
  const topics = [{ id: topicId, partitions }];
  fetchById.response.write(response, { throttleMs: 0, errorCode: 0, sessionId: 0, topics });
  return response.bytes();
}

/** A leader that is in the next of the states with each call; the last one remains. */
function leaderIn(...states: readonly State[]): Pick<LeaderSessions, "at"> {
  let calls = 0;
  const session: Connection = {
    async call({ key, request: codec, response }, request) {
      const state = states[Math.min(calls, states.length - 1)] ?? settled;
      calls += 1;
      const requested = new Writer();
      codec.write(requested, request);
      return response.read(new Reader(key === listOffsets.key ? listed(state) : fetched(state, requested.bytes())));
    },
    handshake: async () => undefined,
  };
  return {
    async at(of, work) {
      try {
        return await work(session, topicId);
      } catch (error) {
        if (!isTransient(error) || calls > 20) throw error;
        return this.at(of, work);
      }
    },
  };
}

async function read(leader: Pick<LeaderSessions, "at">) {
  const batches = createPartitionReader(leader).read({ topic: "orders", partition: 0, start: 0 });
  const offsets: number[] = [];
  let next = await batches.next();
  for (; next.done !== true; next = await batches.next())
    offsets.push(...next.value.map(({ baseOffset }) => baseOffset));
  return { offsets, range: next.value };
}

const all = { offsets: [0, 1, 2, 3], range: { start: 0, end: 4 } };

test("a partition is read to the end that it has at first", async () => {
  expect(await read(leaderIn(settled, { ...settled, records: 9, stable: 9 }))).toEqual(all);
});

test("a new leader that does not know yet what is committed is asked again", async () => {
  const behind = { ...settled, stable: 2 };
  expect(await read(leaderIn(settled, settled, behind, behind, settled))).toEqual(all);
  const unsure = { ...settled, stable: 0, knowsEnd: false };
  expect(await read(leaderIn(unsure, unsure, settled))).toEqual(all);
});

test("a partition without records is not read", async () => {
  const range = { start: 0, end: 0 };
  expect(await read(leaderIn({ ...settled, records: 0, stable: 0 }))).toEqual({ offsets: [], range });
});

test("records that compaction removed are not waited for", async () => {
  expect(await read(leaderIn({ ...settled, records: 2 }))).toEqual({ offsets: [0, 1], range: all.range });
});
