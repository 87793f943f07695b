import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { kafkaHeapBytes } from "@holdfast/common/engine-catalog/kafka.ts";
import { planOf } from "../../effective-parameters.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { type PrivateProcess, startPrivateProcess } from "../../private-process.ts";
import { readPartitions } from "../cluster-view.ts";
import { engineDirectory, jarDirectory, javaProgram, ownNumber } from "../layout.ts";
import { propertiesOf } from "../render.ts";
import { withSession } from "../session.ts";
import { privateSettings } from "../settings.ts";

/** A start recovers all logs, which reads them. */
const startWithinMs = 6 * 3_600_000;
const answersWithinMs = 5_000;
const names = ["private.properties", "private-logging.properties"] as const;

const logging = `log4j.rootLogger=WARN, output
log4j.appender.output=org.apache.log4j.ConsoleAppender
log4j.appender.output.target=System.err
log4j.appender.output.layout=org.apache.log4j.PatternLayout
log4j.appender.output.layout.ConversionPattern=%p %m%n
`;

/** Starts a broker on restored data without listeners for clients. Resolves once it leads all its partitions. */
export async function startPrivateBroker(
  { pipe }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<PrivateProcess> {
  const [settings, log4j] = names.map((name) => join(engineDirectory(instance), name)) as [string, string];
  await writeDurably(settings, propertiesOf(privateSettings(instance)), 0o640);
  await writeDurably(log4j, logging, 0o640);
  const { software } = instance.paths;
  const heap = `${Math.floor(kafkaHeapBytes(planOf(instance.spec)) / 1024 ** 2)}m`;
  const java = [javaProgram(software), `-Xmx${heap}`, "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"];
  const options = ["-XX:-UsePerfData", `-Dlog4j.configuration=file:${log4j}`, "-cp", `${jarDirectory(software)}/*`];
  const server = await startPrivateProcess(
    { pipe },
    {
      argv: [...java, ...options, "kafka.Kafka", settings],
      env: { LC_ALL: "C", TZ: "UTC" },
      serves: (until) => serves(instance, until),
      withinMs: startWithinMs,
    },
    signal,
  );
  return {
    async stop() {
      await server.stop();
      await Promise.all([settings, log4j].map((path) => rm(path, { force: true })));
    },
    kill: server.kill,
  };
}

async function serves(instance: Instance, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(answersWithinMs)]);
  try {
    return await withSession(instance, limit, async (session) => {
      const { brokers, partitions } = await readPartitions(session);
      const number = ownNumber(instance);
      return brokers.includes(number) && partitions.every(({ leader }) => leader === number);
    });
  } catch {
    signal.throwIfAborted();
    // It does not listen yet.
    return false;
  }
}
