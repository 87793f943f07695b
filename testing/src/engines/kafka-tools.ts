import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { artifactsDirectory } from "@holdfast/image/artifact-archive.ts";
import { fetchArtifacts } from "@holdfast/image/fetch-artifacts.ts";
import { inImage, type Launch } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { oneAtATime } from "../controller/claim.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";

const execute = promisify(execFile);
const fetchMs = 600_000;
const jars = "/usr/local/share/kafka";

/** Kafka's tools for users, which the image lacks. */
const tools = {
  kind: "maven",
  group: "org.apache.kafka",
  artifact: "kafka-tools",
  version: "3.9.2",
  sha256: "3e6844711c3f5c9148f76ac96dfbf1de0aeeba11249e142e084b6de68e0ed05e",
  path: `${jars}/kafka-tools-3.9.2.jar`,
} as const;

/** Programs of Kafka's own distribution, in Java and with the jars of the node image. */
export interface KafkaTools {
  /** Command line of a class; it reads and writes the directories `binds`. */
  launch(argv: readonly string[], binds: readonly string[]): Launch;
  /** Runs a class to its end; resolves with its output. */
  run(argv: readonly string[], binds: readonly string[]): Promise<string>;
}

/** Fetches the tools once into the archive of artifacts. Needs the image `kafka`. */
export async function openKafkaTools(): Promise<KafkaTools> {
  const imagesDir = imagesDirectory(process.env);
  const root = findImage(imagesDir, "kafka")?.root;
  if (root === undefined) throw new Error("there is no image kafka");
  const options = { imagesDir, progress: (line: string) => process.stderr.write(`${line}\n`) };
  await oneAtATime("kafka-tools", () => fetchArtifacts([tools], options), fetchMs);
  const archive = artifactsDirectory(imagesDir);
  const java = ["/usr/lib/jvm/default-java/bin/java", "-Xmx256m", "-XX:-UsePerfData"];
  const classPath = ["-cp", `${jars}/*:${join(archive, tools.sha256)}`];
  const launch: KafkaTools["launch"] = (argv, binds) =>
    inImage(root, { argv: [...java, ...classPath, ...argv], uid: testUid, binds: [archive, ...binds], asRoot });
  return {
    launch,
    async run(argv, binds) {
      const { command, args } = launch(argv, binds);
      const { stdout } = await execute(command, [...args], { cwd: "/", maxBuffer: 16 << 20 });
      return stdout;
    },
  };
}
