import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { type WorkloadSpec, WorkloadSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/**
 * The newest spec of a workload on disk. An engine's spec is in a separate file (instance-files.ts), whose format is
 * older than the other kinds of workload.
 */
export interface SpecFile {
  loadSpec(): Promise<WorkloadSpec | undefined>;
  saveSpec(spec: WorkloadSpec): Promise<void>;
}

export function createSpecFile(stateDir: string): SpecFile {
  const path = join(stateDir, "workload", "spec.bin");
  return {
    async loadSpec() {
      const bytes = await readIfExists(path);
      return bytes && fromBinary(WorkloadSpecSchema, bytes);
    },
    saveSpec: (spec) => writeDurably(path, toBinary(WorkloadSpecSchema, spec)),
  };
}
