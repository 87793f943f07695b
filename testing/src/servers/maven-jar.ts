import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { oneAtATime } from "../controller/claim.ts";
import { runHostProgram } from "./host-program.ts";

const copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

/** Path of the jar of an artifact of Maven, such as `group:name:1.0`; fetched at the first call. */
export async function mavenJar(artifact: string): Promise<string> {
  const directory = join(cacheDirectory(process.env), "judges", artifact.replaceAll(":", "-"));
  await oneAtATime(artifact, async () => {
    if (existsSync(directory)) return;
    await mkdir(join(directory, ".."), { recursive: true });
    const making = await mkdtemp(`${directory}.`);
    await runHostProgram("mvn", "-q", "-B", copy, `-Dartifact=${artifact}`, `-DoutputDirectory=${join(making, "jar")}`);
    await rename(join(making, "jar"), directory);
    await rm(making, { recursive: true });
  });
  const [name] = (await readdir(directory)).filter((each) => each.endsWith(".jar"));
  if (name === undefined) throw new Error(`Maven has no jar of ${artifact}`);
  return join(directory, name);
}
