import { create } from "@bufbuild/protobuf";
import { CheckEngineUpgradeResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { upgradeOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const checkEngineUpgrade: TaskHandler<"checkEngineUpgrade"> = {
  async run({ version }, { engine, signal }) {
    const { driver, instance } = await engine();
    const obstacles = await upgradeOf(driver).check(instance, version, signal);
    return create(CheckEngineUpgradeResultSchema, { obstacles: [...obstacles] });
  },
};
