import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ReadReplicationResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineBusy } from "../engines/engine-errors.ts";
import { roleOf } from "../engines/members.ts";
import { replicationOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const readReplication: TaskHandler<"readReplication"> = {
  async run({ replacesPrimary }, { engine, quiet, signal }) {
    const { driver, instance } = await engine();
    const read = () => replicationOf(driver).status(instance, signal);
    const found = await read().catch(async (error: unknown) => {
      // Readers of a replica wait for nothing that is theirs: the service waits for its next primary.
      if (!(error instanceof EngineBusy) || !replacesPrimary || roleOf(instance.spec) !== "replica") throw error;
      await driver.endCommands?.(instance, signal);
      return read();
    });
    const { peers, silentMs, received, ...status } = found;
    return create(ReadReplicationResultSchema, {
      ...status,
      silentMs: BigInt(silentMs ?? 0),
      quietMs: BigInt(Math.round(quiet.quietMs(received ?? status.position))),
      peers: peers.map(({ since, ...peer }) => ({ ...peer, ...(since && { since: timestampFromDate(since) }) })),
    });
  },
};
