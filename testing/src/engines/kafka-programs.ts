import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import type { Platform } from "../platform/platform.ts";
import { testUid } from "../platform/platform-software.ts";
import type { RunningService } from "../platform/services.ts";
import { pythonEnvironment } from "../servers/python-environment.ts";
import { withClientFiles } from "./client-files.ts";
import { openKafkaTools } from "./kafka-tools.ts";

const execute = promisify(execFile);
const packages = ["confluent-kafka==2.16.1"];
const limitMs = 300_000;

type Service = Pick<RunningService, "connection" | "password">;

/** Settings of librdkafka for `app_user`; `ca` is the path of the authority. */
function librdkafkaSettings({ connection, password }: Service, ca: string): Readonly<Record<string, string>> {
  return {
    "bootstrap.servers": `${connection.host}:${connection.port}`,
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "SCRAM-SHA-512",
    "sasl.username": "app_user",
    "sasl.password": password,
    "ssl.ca.location": ca,
  };
}

/**
 * Runs kcat of the image with this text in the file `/mnt/input`; resolves with its output. It has the file of
 * names over the image's own, which needs root.
 */
export async function runKcat(
  platform: Platform,
  service: Service,
  args: readonly string[],
  input = "",
): Promise<string> {
  const root = findImage(imagesDirectory(process.env), "kafka")?.root ?? "";
  return withClientFiles(platform, service, async (directory) => {
    const settings = Object.entries(librdkafkaSettings(service, "/mnt/ca.pem"));
    writeFileSync(join(directory, "kcat.conf"), settings.map(([name, value]) => `${name}=${value}\n`).join(""));
    writeFileSync(join(directory, "input"), input);
    const script =
      'mount --bind "$1/hosts" "$2/etc/hosts" && mount --bind "$1" "$2/mnt" && shift 2 && exec chroot "$@"';
    const inside = [`--userspec=${testUid}:${testUid}`, root, "kcat", "-F", "/mnt/kcat.conf", ...args];
    const launch = ["--mount", "sh", "-c", script, "sh", directory, root, ...inside];
    return (await execute("unshare", launch, { cwd: "/" })).stdout;
  });
}

/**
 * Runs our program with Confluent's client for Python; resolves with its output. It has the file of names as the host's
 * own in a mount namespace, which needs root.
 */
export async function runPythonKafka(platform: Platform, service: Service): Promise<unknown> {
  const programs = await pythonEnvironment(packages);
  return withClientFiles(platform, service, async (directory) => {
    const settings = librdkafkaSettings(service, join(directory, "ca.pem"));
    const script = 'mount --bind "$0" /etc/hosts && exec "$@"';
    const program = [join(programs, "python3"), join(import.meta.dirname, "kafka_clients.py")];
    const { stdout } = await execute("unshare", ["--mount", "sh", "-c", script, join(directory, "hosts"), ...program], {
      env: { PATH: process.env["PATH"] ?? "", CLIENT_SETTINGS: JSON.stringify(settings) },
      timeout: limitMs,
    });
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  });
}

/** Records and MB a second that Kafka's performance tools measured. */
export interface MeasuredPerformance {
  readonly produced: number;
  readonly consumed: number;
  readonly producedMbPerS: number;
  readonly consumedMbPerS: number;
}

/** Runs a program of Kafka's tools by its arguments, with the address of the service and a file of client settings. */
type Tool = (argv: readonly string[]) => Promise<string>;

async function withKafkaTools<T>(
  platform: Platform,
  service: Service,
  work: (run: Tool, servers: string, file: string) => Promise<T>,
): Promise<T> {
  const tools = await openKafkaTools();
  return withClientFiles(platform, service, async (directory) => {
    const servers = `${service.connection.host}:${service.connection.port}`;
    const module = "org.apache.kafka.common.security.scram.ScramLoginModule";
    const settings = {
      "bootstrap.servers": servers,
      "security.protocol": "SASL_SSL",
      "sasl.mechanism": "SCRAM-SHA-512",
      "sasl.jaas.config": `${module} required username="app_user" password="${service.password}";`,
      "ssl.truststore.type": "PEM",
      "ssl.truststore.location": join(directory, "ca.pem"),
    };
    const file = join(directory, "client.properties");
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(file, lines.join(""));
    const java = [`-Djdk.net.hosts.file=${join(directory, "hosts")}`];
    return work((argv) => tools.run([...java, ...argv], [directory]), servers, file);
  });
}

/** Runs a command of Kafka's distribution as `app_user`; resolves with its output. */
export function runKafkaCommand(
  platform: Platform,
  service: Service,
  name: string,
  args: readonly string[],
): Promise<string> {
  return withKafkaTools(platform, service, (run, servers, file) =>
    run([name, "--bootstrap-server", servers, "--command-config", file, ...args]),
  );
}

/** Writes and reads records of 1,000 bytes by Kafka's own performance tools. */
export function runPerformanceTools(
  platform: Platform,
  service: Service,
  topic: string,
  records: number,
): Promise<MeasuredPerformance> {
  return withKafkaTools(platform, service, (run, servers, file) =>
    measurePerformance(run, { servers, file, topic, records }),
  );
}

/** Runs both tools by `run`, with a file of client settings. */
export async function measurePerformance(
  run: Tool,
  {
    servers,
    file,
    topic,
    records,
  }: { readonly servers: string; readonly file: string; readonly topic: string; readonly records: number },
): Promise<MeasuredPerformance> {
  const count = String(records);
  const size = ["--record-size", "1000", "--throughput", "-1"];
  const produce = ["--topic", topic, "--num-records", count, ...size, "--producer.config", file];
  const produced = await run(["org.apache.kafka.tools.ProducerPerformance", ...produce]);
  const sent = /(\d+) records sent, [\d.]+ records\/sec \(([\d.]+) MB\/sec\)(?![\s\S]*records sent)/.exec(produced);
  // The first member of a first group waits for the topic of offsets.
  const group = ["--timeout", "120000", "--consumer.config", file];
  const consume = ["--topic", topic, "--messages", count, "--bootstrap-server", servers, ...group];
  const consumed = await run(["org.apache.kafka.tools.ConsumerPerformance", ...consume, "--hide-header"]);
  // Begin, end, MB, MB a second, records.
  const read = consumed.trim().split("\n").at(-1)?.split(", ") ?? [];
  if (sent === null || read.length < 5) throw new Error(`the tools printed: ${produced}\n${consumed}`);
  return {
    produced: Number(sent[1]),
    consumed: Number(read[4]),
    producedMbPerS: Number(sent[2]),
    consumedMbPerS: Number(read[3]),
  };
}
