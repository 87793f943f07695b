import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { createCertificates } from "./certificates.ts";
import {
  clusterIdOf,
  engineDirectory,
  exporterFile,
  formattedFile,
  jarDirectory,
  javaProgram,
  logDirectory,
  platform,
  restoredFile,
  secretFile,
  serverProgram,
} from "./layout.ts";
import { quorumSettings } from "./settings.ts";

/** Prepares everything for a start: certificates, exporter, and a formatted log directory unless one exists. */
export async function bootstrap(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  await prepareDirectory(deps, instance, signal);
  if (!existsSync(formattedFile(instance))) await format(deps, instance, ["--standalone"], signal);
}

/** Creates what the engine has beside its logs. */
export async function prepareDirectory(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run } = deps;
  const directory = engineDirectory(instance);
  if (!existsSync(directory)) await run(["mkdir", "-m", "0750", directory], { signal });
  await createCertificates(deps, instance, signal);
  const [program, java] = [serverProgram(instance), javaProgram(instance.paths.software)];
  // A full disk has no space for another link.
  if ((await linkedBy(program)) !== java) await run(["ln", "-sfn", java, program], { signal });
  if (!existsSync(exporterFile(instance))) await createExporter(deps, instance, signal);
}

async function linkedBy(link: string): Promise<string | undefined> {
  try {
    return await readlink(link);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Replaces the log directory by a formatted one of this member. It appears complete or not at all. `voters` are the
 * options of Kafka's storage tool that choose the first voters.
 */
export async function format(
  deps: EngineDeps,
  instance: Instance,
  voters: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { runAsEngine: run } = deps;
  await prepareDirectory(deps, instance, signal);
  const { software } = instance.paths;
  const [draft, settings] = ["logs.partial", "format.properties"].map((name) => join(engineDirectory(instance), name));
  if (draft === undefined || settings === undefined) throw new Error("no paths");
  await run(["rm", "-rf", draft, logDirectory(instance), restoredFile(instance)], { signal });
  const lines = quorumSettings(instance, draft).map(([name, value]) => `${name}=${value}\n`);
  await run(["tee", settings], { input: lines.join(""), signal });
  const java = [javaProgram(software), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"];
  const tool = ["-cp", `${jarDirectory(software)}/*`, "kafka.tools.StorageTool", "format"];
  const identity = ["--cluster-id", clusterIdOf(instance), "--config", settings];
  await run([...java, ...tool, ...identity, ...voters], { signal });
  await run(["sync", "--file-system", draft], { signal });
  await run(["mv", draft, logDirectory(instance)], { signal });
  await syncPath(engineDirectory(instance));
}

/** Settings of the metrics exporter: the figures that the driver reads, for the platform alone. */
async function createExporter(
  { runAsEngine: run, randomBytes }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const secret = randomBytes(32).toString("hex");
  const salt = randomBytes(16).toString("hex");
  // The exporter prints the hash as a number, without leading zeroes.
  const passwordHash = hash("sha256", `${salt}:${secret}`).replace(/^0+/, "");
  const topics = ["", `,topic=${platform}.*`, ",topic=__consumer_offsets", ",topic=__transaction_state"];
  const names = ["MessagesInPerSec", "BytesInPerSec", "BytesOutPerSec"];
  const beans = [
    ...names.flatMap((name) => topics.map((topic) => `kafka.server:type=BrokerTopicMetrics,name=${name}${topic}`)),
    "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
  ];
  const content = `httpServer:
  authentication:
    basic:
      username: ${platform}
      algorithm: SHA-256
      salt: "${salt}"
      passwordHash: "${passwordHash}"
includeObjectNames:
${beans.map((bean) => `  - "${bean}"\n`).join("")}rules:
  - pattern: "kafka.server<type=BrokerTopicMetrics, name=(\\\\w+), topic=(.+)><>Count"
    name: "platform_$1"
    labels:
      topic: "$2"
  - pattern: "kafka.server<type=BrokerTopicMetrics, name=(\\\\w+)><>Count"
    name: "all_$1"
  - pattern: "kafka.server<type=ReplicaManager, name=(\\\\w+)><>Value"
    name: "$1"
`;
  await run(["install", "-m", "0640", "/dev/null", secretFile(instance)], { signal });
  await run(["dd", "status=none", `of=${secretFile(instance)}`], { input: secret, signal });
  const partial = `${exporterFile(instance)}.partial`;
  await run(["tee", partial], { input: content, signal });
  await run(["mv", partial, exporterFile(instance)], { signal });
}
