import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { InstancePaths } from "../engines/engine-driver.ts";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import type { ParameterHistory } from "./parameter-history.ts";

/** What the agent knows of the engine that runs, whoever started it. */
export interface Applied extends ParameterHistory {
  /** Restart count that the running engine was started for, as decimal text. */
  readonly restartCount: string;
}

/** The instance on disk: what was asked for last, and what the engine runs with. */
export interface InstanceFiles {
  loadSpec(): Promise<InstanceSpec | undefined>;
  saveSpec(spec: InstanceSpec): Promise<void>;
  loadApplied(): Promise<Applied | undefined>;
  saveApplied(applied: Applied): Promise<void>;
  /** `software` is the driver's, as seen in a machine. */
  pathsOf(software: string): InstancePaths;
  /** Base path of the engine's log. */
  readonly log: string;
}

/** An agent of before rights that comes back to this disk starts no engine that nobody could end. */
function withoutPrimary(spec: InstanceSpec): InstanceSpec {
  if (spec.replication?.underRight !== true) return spec;
  const { primaryNodeId } = spec.replication;
  return { ...spec, replication: { ...spec.replication, primaryNodeId: "", primaryUnderRight: primaryNodeId } };
}

function withPrimary(spec: InstanceSpec): InstanceSpec {
  if (spec.replication?.underRight !== true) return spec;
  const { primaryUnderRight } = spec.replication;
  return { ...spec, replication: { ...spec.replication, primaryNodeId: primaryUnderRight, primaryUnderRight: "" } };
}

export interface Directories {
  readonly stateDir: string;
  readonly runDir: string;
  readonly dataDir: string;
  readonly softwareRoot: string;
}

export function createInstanceFiles({ stateDir, runDir, dataDir, softwareRoot }: Directories): InstanceFiles {
  const directory = join(stateDir, "instance");
  const specFile = join(directory, "spec.bin");
  const appliedFile = join(directory, "applied.json");
  return {
    async loadSpec() {
      const bytes = await readIfThere(specFile);
      return bytes === undefined ? undefined : withPrimary(fromBinary(InstanceSpecSchema, bytes));
    },
    saveSpec: (spec) => writeDurably(specFile, toBinary(InstanceSpecSchema, withoutPrimary(spec))),
    async loadApplied() {
      const bytes = await readIfThere(appliedFile);
      return bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as Applied);
    },
    saveApplied: (applied) => writeDurably(appliedFile, JSON.stringify(applied)),
    pathsOf: (software) => ({
      data: dataDir,
      config: join(directory, "config"),
      tls: join(directory, "tls"),
      run: join(runDir, "engine"),
      software: join(softwareRoot, software),
    }),
    log: join(stateDir, "log", "engine.log"),
  };
}
