import { spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { Platform } from "./platform.ts";
import { lastLogLines } from "./platform-logs.ts";
import { argumentsAndEnvironment } from "./platform-processes.ts";
import { createRest, type Rest } from "../api/rest.ts";
import { freePorts } from "./free-ports.ts";
import { waitUntil } from "../wait-until.ts";

/** A second controller on the platform's etcd, with a separate DNS server. */
export interface SecondController {
  readonly pid: number;
  /** REST API of the second controller, as the owner of the organization. */
  readonly rest: Rest;
  stop(): Promise<void>;
}

const checkout = join(import.meta.dirname, "..", "..", "..");

/** Starts a controller with the first controllers' settings, its own listeners and this additional environment. */
export async function startSecondController(
  platform: Platform,
  environment: Readonly<Record<string, string>> = {},
): Promise<SecondController> {
  const { controllers, dns: firstDns } = platform.processes();
  const [api, agents, dns] = await freePorts(3);
  const baseUrl = `https://127.0.0.1:${api}`;
  const start = (name: string, settings: Record<string, string>) => {
    const launch = dyingWithParent([process.execPath, join(checkout, name, "src", "main.ts")]);
    const log = openSync(join(platform.directory, "log", `second-${name}.log`), "a");
    const child = spawn(launch.command, launch.args, { cwd: "/", env: settings, stdio: ["ignore", log, log] });
    const ended = new Promise((resolve) => child.once("close", resolve));
    return { child, ended };
  };
  const settings = settingsOf(controllers[0]);
  // Machines find this controller at the first one's address.
  const agentsAt = `${endpointOf(settings["HOLDFAST_AGENT_LISTEN"] ?? "").host}:${agents}`;
  const controller = start("controller", {
    ...settings,
    ...environment,
    HOLDFAST_CONTROLLER_ID: "controller-2",
    HOLDFAST_API_LISTEN: `127.0.0.1:${api}`,
    HOLDFAST_BASE_URL: baseUrl,
    HOLDFAST_AGENT_LISTEN: agentsAt,
    HOLDFAST_AGENT_ADVERTISE: agentsAt,
    HOLDFAST_DNS_SERVERS: `127.0.0.1:${dns}`,
  });
  const directory = join(platform.directory, "second-dns");
  mkdirSync(directory, { recursive: true });
  const server = start("dns", {
    ...settingsOf(firstDns),
    HOLDFAST_DNS_LISTEN: `127.0.0.1:${dns}`,
    HOLDFAST_DNS_DIR: directory,
    HOLDFAST_CONTROLLERS: agentsAt,
  });
  const rest = createRest({ baseUrl, ca: platform.ca, authorization: platform.owner });
  const ready = async () => (await rest.get("/catalog")).status === 200;
  await waitUntil("the second controller answers", ready, {
    describe: () => lastLogLines(platform.directory, 20),
  });
  return {
    pid: controller.child.pid ?? 0,
    rest,
    async stop() {
      rest.close();
      for (const { child } of [controller, server]) child.kill("SIGTERM");
      await Promise.all([controller.ended, server.ended]);
    },
  };
}

function settingsOf(pid: number | undefined): Record<string, string> {
  const entries = argumentsAndEnvironment(pid ?? 0)
    .environ.split("\0")
    .filter((entry) => entry.includes("="));
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
}
