import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { readIfExists, writeDurably, writeAtomically } from "@holdfast/common/durable-file.ts";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ConfigFile, InstancePaths } from "../../engines/engine-driver.ts";
import type { ParameterHistory } from "./parameter-history.ts";

/** Facts about the running engine, also if another agent started it. */
export interface Applied extends ParameterHistory {
  /** Restart count that the running engine was started for, in decimal. */
  readonly restartCount: string;
}

const appliedFormat = storedFormat<Applied>({ lastAccepted: "lastGood" });

/** Files of the instance: its newest settings, and the facts about the running engine. */
export interface InstanceFiles {
  loadSpec(): Promise<InstanceSpec | undefined>;
  saveSpec(spec: InstanceSpec): Promise<void>;
  loadApplied(): Promise<Applied | undefined>;
  saveApplied(applied: Applied): Promise<void>;
  /** `software` is the driver's path as seen inside a machine. */
  pathsOf(software: string): InstancePaths;
  /** Base path of the engine's log. */
  readonly log: string;
}

/**
 * Moves the primary to a separate field of the stored spec. An agent of a release without primary leases that takes
 * over this disk then starts no engine, which could not be fenced.
 */
function withoutPrimary(spec: InstanceSpec): InstanceSpec {
  if (spec.replication?.underPrimaryLease !== true) return spec;
  const { primaryNodeId } = spec.replication;
  return { ...spec, replication: { ...spec.replication, primaryNodeId: "", primaryUnderLease: primaryNodeId } };
}

function withPrimary(spec: InstanceSpec): InstanceSpec {
  if (spec.replication?.underPrimaryLease !== true) return spec;
  const { primaryUnderLease } = spec.replication;
  return { ...spec, replication: { ...spec.replication, primaryNodeId: primaryUnderLease, primaryUnderLease: "" } };
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
  const log = join(stateDir, "log", "engine.log");
  return {
    async loadSpec() {
      const bytes = await readIfExists(specFile);
      return bytes === undefined ? undefined : withPrimary(fromBinary(InstanceSpecSchema, bytes));
    },
    saveSpec: (spec) => writeDurably(specFile, toBinary(InstanceSpecSchema, withoutPrimary(spec))),
    async loadApplied() {
      const bytes = await readIfExists(appliedFile);
      return bytes === undefined ? undefined : appliedFormat.parse(bytes.toString("utf8"));
    },
    saveApplied: (applied) => writeDurably(appliedFile, appliedFormat.format(applied)),
    pathsOf: (software) => ({
      data: dataDir,
      config: join(directory, "config"),
      tls: join(directory, "tls"),
      run: join(runDir, "engine"),
      software: join(softwareRoot, software),
      log,
    }),
    log,
  };
}

/**
 * Writes exactly these files into the directory and returns the names of those that changed. Each file is replaced
 * atomically. They are not synced: after a power failure they are compared again before the engine starts.
 */
export async function syncConfigFiles(directory: string, files: readonly ConfigFile[]): Promise<string[]> {
  await mkdir(directory, { recursive: true, mode: 0o750 });
  const changedFiles = await Promise.all(
    files.map(async ({ name, content, mode }) => {
      const path = join(directory, name);
      if ((await readIfExists(path))?.toString("utf8") === content) return [];
      // The engine reads files of subdirectories too.
      if (name.includes("/")) await mkdir(dirname(path), { recursive: true, mode: 0o750 });
      await writeAtomically(path, content, mode);
      return [name];
    }),
  );
  const changed = changedFiles.flat();
  for (const name of await readdir(directory)) {
    if (files.some((file) => file.name.split("/")[0] === name)) continue;
    await rm(join(directory, name), { recursive: true });
    changed.push(name);
  }
  return changed;
}
