import type { UsersFacet } from "../engines/contents-facets.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CheckEngineUpgradeResultSchema,
  ConvergeInstanceResultSchema,
  ReadReplicationResultSchema,
  SettleEngineChangeResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineBusy } from "../engines/engine-errors.ts";
import { roleOf } from "../engines/members.ts";
import { TaskFailed } from "../task-failed.ts";
import {
  databasesOf,
  type InputOf,
  replicationOf,
  type TaskContext,
  type TaskHandler,
  upgradeOf,
  usersOf,
} from "./task-handler.ts";

export const convergeInstance: TaskHandler<"convergeInstance"> = {
  async run({ instance }, { supervisor, signal }) {
    if (instance === undefined) throw new TaskFailed("invalid_task", "the task names no instance");
    await supervisor.apply(instance, signal);
    return create(ConvergeInstanceResultSchema);
  },
};

export const checkEngineUpgrade: TaskHandler<"checkEngineUpgrade"> = {
  async run({ version }, { engine, signal }) {
    const { driver, instance } = await engine();
    const obstacles = await upgradeOf(driver).check(instance, version, signal);
    return create(CheckEngineUpgradeResultSchema, { obstacles: [...obstacles] });
  },
};

export const readLogs: TaskHandler<"readLogs"> = {
  run: (input, { logs, signal }) => logs.read(input, signal),
};

export const readReplication: TaskHandler<"readReplication"> = {
  async run({ replacesPrimary }, { engine, replicationSilence, signal }) {
    const { driver, instance } = await engine();
    const read = () => replicationOf(driver).status(instance, signal);
    const found = await read().catch(async (error: unknown) => {
      // A failover waits for the replica's answer, so scripts of its readers are ended.
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
      if (user === undefined) throw new TaskFailed("invalid_task", "the task names no user");
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
      throw new TaskFailed("invalid_task", "the task names no change");
  }
}
