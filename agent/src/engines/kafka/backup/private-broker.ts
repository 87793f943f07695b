import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { kafkaHeapBytes } from "@holdfast/common/engine-catalog/kafka.ts";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { ProgramFailed } from "../../../os/program.ts";
import { planOf } from "../../effective-parameters.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { readPartitions } from "../cluster-view.ts";
import { engineDirectory, jarDirectory, javaProgram, ownNumber } from "../layout.ts";
import { propertiesOf } from "../render.ts";
import { withSession } from "../session.ts";
import { privateSettings } from "../settings.ts";

/** A broker on restored data without listeners for clients. */
export interface PrivateBroker {
  /** Shuts down in order. */
  stop(): Promise<void>;
  /** Ends the broker if it runs. */
  kill(): Promise<void>;
}

const pollMs = 100;
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

/** Resolves once the broker leads all its partitions. */
export async function startPrivateBroker(
  { pipe }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<PrivateBroker> {
  const [settings, log4j] = names.map((name) => join(engineDirectory(instance), name)) as [string, string];
  await writeDurably(settings, propertiesOf(privateSettings(instance)), 0o640);
  await writeDurably(log4j, logging, 0o640);
  const { software } = instance.paths;
  const heap = `${Math.floor(kafkaHeapBytes(planOf(instance.spec)) / 1024 ** 2)}m`;
  const java = [javaProgram(software), `-Xmx${heap}`, "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"];
  const options = ["-XX:-UsePerfData", `-Dlog4j.configuration=file:${log4j}`, "-cp", `${jarDirectory(software)}/*`];
  const finished = new AbortController();
  const server = pipe([...java, ...options, "kafka.Kafka", settings], {
    env: { LC_ALL: "C", TZ: "UTC" },
    signal: AbortSignal.any([signal, finished.signal]),
  });
  const ended = drain(server.output).then(() => server.ended);
  ended.catch(() => undefined);

  async function kill(): Promise<void> {
    finished.abort();
    await ended.catch(() => undefined);
  }

  try {
    const until = AbortSignal.any([signal, AbortSignal.timeout(startWithinMs)]);
    while (!(await serves(instance, until))) {
      const output = await Promise.race([ended, sleep(pollMs, undefined, { signal: until })]);
      if (output !== undefined) throw new Error(`the private broker ended: ${output.slice(-500)}`);
    }
  } catch (error) {
    await kill();
    throw error instanceof ProgramFailed ? new Error("the private broker ended", { cause: error }) : error;
  }
  return {
    async stop() {
      server.signal("SIGTERM");
      // A JVM that ends by SIGTERM reports it as its status.
      await ended.catch((error: unknown) => {
        if (!(error instanceof ProgramFailed) || !/ended with 143|died of SIGTERM/.test(error.message)) throw error;
      });
      await Promise.all([settings, log4j].map((path) => rm(path, { force: true })));
    },
    kill,
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

async function drain(output: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of output);
}
