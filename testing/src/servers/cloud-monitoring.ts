import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { oneAtATime } from "../controller/claim.ts";
import { freePorts } from "../platform/free-ports.ts";
import { missingProgram, runHostProgram, startHostProgram } from "./host-program.ts";

/** A CloudWatch by moto, from PyPI. */
export interface CloudMonitoring {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  remove(): Promise<void>;
}

const motoVersion = "5.2.5";

/** A running one, or the reason why this host cannot have it. The first few requests are not authorized. */
export async function startCloudMonitoring(): Promise<CloudMonitoring | string> {
  const missing = await missingProgram("python3");
  if (missing !== undefined) return missing;
  const directory = join(cacheDirectory(process.env), "judges", `moto-${motoVersion}`);
  const created = await oneAtATime("moto", () => install(directory)).catch((error: unknown) => String(error));
  if (created !== undefined) return created;
  const [port = 0] = await freePorts(1);
  const argv = [join(directory, "bin", "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)];
  const running = await startHostProgram(argv, /Running on http/);
  return { url: `http://127.0.0.1:${port}`, remove: () => running.end("SIGKILL") };
}

/** A virtual environment cannot be moved: it is installed beside its marker. */
async function install(directory: string): Promise<undefined> {
  const marker = join(directory, "whole");
  if (existsSync(marker)) return;
  await rm(directory, { recursive: true, force: true });
  await mkdir(dirname(directory), { recursive: true });
  await runHostProgram("python3", "-m", "venv", directory);
  await runHostProgram(join(directory, "bin", "pip"), "install", "-q", `moto[server]==${motoVersion}`);
  await mkdir(`${marker}.partial`);
  await rename(`${marker}.partial`, marker);
}
