import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../wait-until.ts";
import { freePorts } from "./free-ports.ts";
import type { Platform } from "./platform.ts";
import { argumentsAndEnvironment, isAlive, programOf } from "./platform-processes.ts";

/** An additional process of the platform's inference proxy. */
export interface InferenceProcess {
  /** Base URL for clients. */
  readonly url: string;
  readonly directory: string;
  /** Output of the process so far. */
  readonly output: string;
  readonly pid: number;
  kill9(): Promise<void>;
  /** Starts the process again in its directory. */
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

/**
 * Starts a process with the identity and the controllers of the platform's own process, on another port and with
 * another directory. `settings` override the settings of the platform's process.
 */
export async function startInferenceProcess(
  platform: Platform,
  settings: Readonly<Record<string, string>> = {},
): Promise<InferenceProcess> {
  const [port = 0] = await freePorts(1);
  const directory = mkdtempSync(join(tmpdir(), "holdfast-inference-"));
  const { environ, program } = await waitUntil("the platform's own runs", () => {
    const { inference } = platform.processes();
    if (inference === undefined) return undefined;
    return { environ: argumentsAndEnvironment(inference).environ, program: programOf(inference) };
  });
  const inherited = Object.fromEntries(
    environ
      .split("\0")
      .filter((entry) => entry.includes("="))
      .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
  let child: ChildProcess | undefined;
  let output = "";

  async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    output = "";
    child = spawn(process.execPath, ["--disable-warning=DEP0123", program], {
      env: {
        ...inherited,
        HOLDFAST_INFERENCE_LISTEN: `127.0.0.1:${port}`,
        HOLDFAST_INFERENCE_DIR: directory,
        HOLDFAST_INFERENCE_KEY_FILE: join(directory, "key"),
        HOLDFAST_INFERENCE_METRICS: join(directory, "metrics.sock"),
        HOLDFAST_INFERENCE_SHARES_PORT: "",
        ...settings,
        ...environment,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const read = (text: string) => {
      output = (output + text).slice(-64_000);
    };
    child.stdout?.setEncoding("utf8").on("data", read);
    child.stderr?.setEncoding("utf8").on("data", read);
    await waitUntil("it serves", () => output.includes("inference ready"), { describe: () => output });
  }

  async function kill9(): Promise<void> {
    const pid = child?.pid;
    child?.kill("SIGKILL");
    if (pid !== undefined) await waitUntil("it is absent", () => !isAlive(pid));
  }

  await start();
  await waitUntil("it follows", () => output.includes("following controller"), { describe: () => output });
  return {
    url: `${settings["HOLDFAST_INFERENCE_PLAIN"] === "yes" ? "http" : "https"}://127.0.0.1:${port}/v1`,
    directory,
    get output() {
      return output;
    },
    get pid() {
      return child?.pid ?? 0;
    },
    kill9,
    start,
    async remove() {
      await kill9();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
