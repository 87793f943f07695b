import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ReadReplicationResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { replicationOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const readReplication: TaskHandler<"readReplication"> = {
  async run(_, { engine, quiet, signal }) {
    const { driver, instance } = await engine();
    const { peers, silentMs, received, ...status } = await replicationOf(driver).status(instance, signal);
    return create(ReadReplicationResultSchema, {
      ...status,
      silentMs: BigInt(silentMs ?? 0),
      quietMs: BigInt(Math.round(quiet.quietMs(received ?? status.position))),
      peers: peers.map(({ since, ...peer }) => ({ ...peer, ...(since && { since: timestampFromDate(since) }) })),
    });
  },
};
