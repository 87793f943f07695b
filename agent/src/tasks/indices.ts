import { create } from "@bufbuild/protobuf";
import {
  DropEngineIndexResultSchema,
  ListEngineIndicesResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { IndicesFacet } from "../engines/indices-facet.ts";
import { TaskFailed } from "../task-failed.ts";
import type { InputOf, TaskContext, TaskHandler } from "./task-handler.ts";

/** Throws "not_supported" for an engine without indices. */
function indicesOf({ driver }: DrivenInstance): IndicesFacet {
  if (driver.indices === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no indices`);
  return driver.indices;
}

export const listEngineIndices: TaskHandler<"listEngineIndices"> = {
  async run(_input, { engine, signal }) {
    const driven = await engine();
    const found = await indicesOf(driven).list(driven.instance, signal);
    const indices = found.map(({ documents, sizeBytes, ...index }) => ({
      ...index,
      documents: BigInt(documents),
      sizeBytes: BigInt(sizeBytes),
    }));
    return create(ListEngineIndicesResultSchema, { indices });
  },
};

export const dropEngineIndex: TaskHandler<"dropEngineIndex"> = {
  /** An earlier run may have dropped the index without recording its result, so it counts as dropped. */
  async inspect(input, context) {
    await dropIndex(input, context);
    return create(DropEngineIndexResultSchema, { existed: true });
  },
  run: async (input, context) => create(DropEngineIndexResultSchema, await dropIndex(input, context)),
};

async function dropIndex({ name }: InputOf<"dropEngineIndex">, { engine, signal }: TaskContext) {
  const driven = await engine();
  return indicesOf(driven).drop(driven.instance, name, signal);
}
