import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { KafkaTools } from "@holdfast/testing/engines/kafka-tools.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";

const password = "a-password-of-the-bench";

export interface BareKafka {
  readonly servers: string;
  /** Client settings of Kafka's tools, and their directory. */
  readonly file: string;
  readonly directory: string;
  remove(): Promise<void>;
}

/**
 * A broker of the node image at Kafka's defaults, which itself terminates TLS: clients authenticate by SCRAM-SHA-512 as
 * with Holdfast, with a certificate of the same kind of key, and the heap is the given one.
 */
export async function startBareKafka(tools: KafkaTools, heapMb: number): Promise<BareKafka> {
  const directory = programDirectory("bench-kafka");
  const [port = 0, brokers = 0, controllers = 0] = await freePorts(3);
  const servers = `127.0.0.1:${port}`;
  const path = (name: string) => join(directory, name);
  const subject = ["-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("server.key")];
  await runProgram("openssl", ["req", "-x509", ...key, "-out", path("ca.pem"), "-days", "2", ...subject]);
  await runProgram("sh", ["-c", 'cat "$0/server.key" "$0/ca.pem" > "$0/server.pem"', directory]);
  const module = "org.apache.kafka.common.security.scram.ScramLoginModule required";
  await writeProperties(path("server.properties"), {
    "process.roles": "broker,controller",
    "node.id": "1",
    "log.dirs": path("logs"),
    "controller.quorum.voters": `1@127.0.0.1:${controllers}`,
    listeners: `CLIENTS://${servers},BROKERS://127.0.0.1:${brokers},CONTROLLERS://127.0.0.1:${controllers}`,
    "advertised.listeners": `CLIENTS://${servers},BROKERS://127.0.0.1:${brokers}`,
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,BROKERS:PLAINTEXT,CONTROLLERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "controller.listener.names": "CONTROLLERS",
    "offsets.topic.replication.factor": "1",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.clients.scram-sha-512.sasl.jaas.config": `${module};`,
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": path("server.pem"),
  });
  await writeProperties(path("client.properties"), {
    "bootstrap.servers": servers,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": `${module} username="app_user" password="${password}";`,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": path("ca.pem"),
  });
  await runProgram("chmod", ["-R", "a+rwX", directory]);
  const user = `SCRAM-SHA-512=[name=app_user,password=${password}]`;
  const format = ["format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--config", path("server.properties")];
  await tools.run(["kafka.tools.StorageTool", ...format, "--add-scram", user], [directory]);
  const log = path("log.properties");
  await writeProperties(log, {
    "log4j.rootLogger": "INFO, output",
    "log4j.appender.output": "org.apache.log4j.ConsoleAppender",
    "log4j.appender.output.layout": "org.apache.log4j.PatternLayout",
    "log4j.appender.output.layout.ConversionPattern": "%m%n",
  });
  const java = [`-Xms${heapMb}m`, `-Xmx${heapMb}m`, "-XX:+UseSerialGC", `-Dlog4j.configuration=file:${log}`];
  const launch = tools.launch([...java, "kafka.Kafka", path("server.properties")], [directory]);
  const running = await startTemporaryProcess(launch, /Kafka Server started/);
  return {
    servers,
    file: path("client.properties"),
    directory,
    async remove() {
      await running.end("SIGTERM");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function writeProperties(file: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  return writeFile(file, lines.join(""));
}
