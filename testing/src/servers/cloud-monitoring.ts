import { join } from "node:path";
import { freePorts } from "../platform/free-ports.ts";
import { missingProgram, startHostProgram } from "./host-program.ts";
import { pythonEnvironment } from "./python-environment.ts";

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
  const programs = await pythonEnvironment([`moto[server]==${motoVersion}`]);
  const [port = 0] = await freePorts(1);
  const argv = [join(programs, "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)];
  const running = await startHostProgram(argv, /Running on http/);
  return { url: `http://127.0.0.1:${port}`, remove: () => running.end("SIGKILL") };
}
