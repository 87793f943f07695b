import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { waitUntil } from "../wait-until.ts";
import { freePorts } from "./free-ports.ts";
import type { Platform } from "./platform.ts";
import { argumentsAndEnvironment, isAlive, programOf } from "./platform-processes.ts";

/** An additional controller on the platform's stores, on a host without machines. */
export interface AdditionalController {
  readonly pid: number;
  kill9(): Promise<void>;
  /** Starts the controller again. */
  start(): Promise<void>;
}

/** Files that the leading controller writes to the installation's disk. */
const written = [
  "CA_FILE",
  "BOOTSTRAP_FILE",
  "DNS_IDENTITY_DIR",
  "ISSUER_IDENTITY_DIR",
  "STORE_IDENTITY_DIR",
  "INFERENCE_IDENTITY_DIR",
];

export async function startAdditionalController(platform: Platform): Promise<AdditionalController> {
  const [pid = 0] = platform.processes().controllers;
  const entries = argumentsAndEnvironment(pid)
    .environ.split("\0")
    .filter((entry) => entry.includes("="));
  const platformSettings = Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
  const program = programOf(pid);
  const [agents, api] = await freePorts(2);
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    let output = "";
    child = spawn(process.execPath, ["--disable-warning=DEP0123", program], {
      env: {
        ...platformSettings,
        ...Object.fromEntries(written.map((name) => [`HOLDFAST_${name}`, ""])),
        HOLDFAST_CONTROLLER_ID: "",
        HOLDFAST_AGENT_LISTEN: `127.0.0.1:${agents}`,
        HOLDFAST_API_LISTEN: `127.0.0.1:${api}`,
        HOLDFAST_AGENT_ADVERTISE: "",
        HOLDFAST_PROVIDER: "none",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const read = (text: string) => {
      output = (output + text).slice(-64_000);
    };
    child.stdout?.setEncoding("utf8").on("data", read);
    child.stderr?.setEncoding("utf8").on("data", read);
    await waitUntil("the second controller serves", () => output.includes("serving"), { describe: () => output });
  }

  await start();
  return {
    get pid() {
      return child?.pid ?? 0;
    },
    async kill9() {
      const old = child?.pid;
      child?.kill("SIGKILL");
      if (old !== undefined) await waitUntil("it is absent", () => !isAlive(old));
    },
    start,
  };
}

/** The process with a TCP connection from a port of 127.0.0.1; undefined when it ended. */
export function processOfPort(port: number, pids: readonly number[]): number | undefined {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const row = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .find((line) => line.trim().split(/\s+/)[1] === local);
  const inode = row?.trim().split(/\s+/)[9];
  return pids.find((pid) => filesOf(pid).includes(`socket:[${inode}]`));
}

function filesOf(pid: number): readonly string[] {
  const directory = `/proc/${pid}/fd`;
  try {
    return readdirSync(directory).flatMap((fd) => {
      try {
        return readlinkSync(join(directory, fd));
      } catch {
        // The descriptor was closed after the directory was listed.
        return [];
      }
    });
  } catch {
    // The process has ended.
    return [];
  }
}
