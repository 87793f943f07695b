import type { UsersFacet } from "../engines/contents-facets.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CheckEngineUpgradeResultSchema,
  ConvergeInstanceResultSchema,
  ReadLogsResultSchema,
  ReadReplicationResultSchema,
  SettleEngineChangeResultSchema,
  type WorkloadSpec,
  WorkloadSpecSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineBusy } from "../engines/engine-errors.ts";
import { roleOf } from "../engines/members.ts";
import { TaskFailed } from "../task-failed.ts";
import {
  databasesOf,
  engineFacetOf,
  type InputOf,
  replicationOf,
  type TaskContext,
  type TaskHandler,
  upgradeOf,
  usersOf,
} from "./task-handler.ts";

export const convergeInstance: TaskHandler<"convergeInstance"> = {
  async run(input, { workload, signal }) {
    await workload.apply(specOf(input), signal);
    return create(ConvergeInstanceResultSchema);
  },
};

/** Controllers of older releases send an engine's spec by itself. */
function specOf({ workload, instance }: InputOf<"convergeInstance">): WorkloadSpec {
  if (workload !== undefined) return workload;
  if (instance === undefined) throw new TaskFailed("invalid_task", "The task has no workload.");
  return create(WorkloadSpecSchema, { workload: { case: "engine", value: instance } });
}

export const checkEngineUpgrade: TaskHandler<"checkEngineUpgrade"> = {
  async run({ version }, { engine, signal }) {
    const { driver, instance } = await engine();
    const obstacles = await upgradeOf(driver).check(instance, version, signal);
    return create(CheckEngineUpgradeResultSchema, { obstacles: [...obstacles] });
  },
};

export const readLogs: TaskHandler<"readLogs"> = {
  // Before its first spec a machine has printed nothing.
  run: async (input, { workload, signal }) =>
    (await workload.current()?.logs.read(input, signal)) ?? create(ReadLogsResultSchema, { selected: true }),
};

export const readReplication: TaskHandler<"readReplication"> = {
  async run({ replacesPrimary }, context) {
    const { signal } = context;
    const { driver, instance } = await context.engine();
    const { replicationSilence } = engineFacetOf(context);
    const read = () => replicationOf(driver).status(instance, signal);
    const found = await read().catch(async (error: unknown) => {
      // A failover waits for the replica's response, so scripts of its readers are ended.
      if (!(error instanceof EngineBusy) || !replacesPrimary || roleOf(instance.spec) !== "replica") throw error;
      await driver.endCommands?.(instance, signal);
      return read();
    });
    const { peers, silentMs, received, ...status } = found;
    return create(ReadReplicationResultSchema, {
      ...status,
      silentMs: BigInt(silentMs ?? 0),
      unchangedMs: BigInt(Math.round(replicationSilence.unchangedMs(received ?? status.position))),
      peers: peers.map(({ since, ...peer }) => ({ ...peer, ...(since && { since: timestampFromDate(since) }) })),
    });
  },
};

/** Cancels the attempts of a change of a user or database, then reads from the engine whether it took effect. */
export const settleEngineChange: TaskHandler<"settleEngineChange"> = {
  async run(input, context) {
    await context.withdraw(input.withdrawnTasks);
    return create(SettleEngineChangeResultSchema, await readChange(input, context));
  },
};

async function readChange({ change }: InputOf<"settleEngineChange">, { engine, signal, withinMs }: TaskContext) {
  const { driver, instance } = await engine();
  const options = { withinMs };
  const settled = (user: Parameters<UsersFacet["settled"]>[1]) =>
    usersOf(driver).settled(instance, user, signal, options);
  const database = (name: string, mark: string) => databasesOf(driver).settled(instance, name, mark, signal, options);
  switch (change.case) {
    case "putEngineUser": {
      const { user } = change.value;
      if (user === undefined) throw new TaskFailed("invalid_task", "The task names no user.");
      const { matches, role } = await settled(user);
      return { taken: matches, role };
    }
    case "dropEngineUser": {
      const { exists, role } = await settled({ username: change.value.username, verifier: "" });
      return { taken: !exists, role };
    }
    case "createEngineDatabase":
      return { taken: (await database(change.value.name, change.value.mark)).marked };
    case "dropEngineDatabase":
      return { taken: !(await database(change.value.name, "")).exists };
    case undefined:
      throw new TaskFailed("invalid_task", "The task names no change.");
  }
}
