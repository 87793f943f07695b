import { spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { Platform } from "./platform.ts";
import { lastLogLines } from "./platform-logs.ts";
import { argumentsAndEnvironment, programOf } from "./platform-processes.ts";
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

/** Starts a controller with the first controllers' settings, its own listeners and this additional environment. */
export async function startSecondController(
  platform: Platform,
  environment: Readonly<Record<string, string>> = {},
): Promise<SecondController> {
  const { controllers, dns: firstDns = 0 } = platform.processes();
  const [firstController = 0] = controllers;
  const [api, agents, dns] = await freePorts(3);
  const baseUrl = `https://127.0.0.1:${api}`;
  const start = (name: string, first: number, changes: Record<string, string>) => {
    const settings = { ...settingsOf(first), ...changes };
    const launch = dyingWithParent([process.execPath, programOf(first)]);
    const log = openSync(join(platform.directory, "log", `second-${name}.log`), "a");
    const child = spawn(launch.command, launch.args, { cwd: "/", env: settings, stdio: ["ignore", log, log] });
    const ended = new Promise((resolve) => child.once("close", resolve));
    return { child, ended };
  };
  // Machines find this controller at the first one's address.
  const agentsAt = `${endpointOf(settingsOf(firstController)["HOLDFAST_AGENT_LISTEN"] ?? "").host}:${agents}`;
  const controller = start("controller", firstController, {
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
  const server = start("dns", firstDns, {
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

function settingsOf(pid: number): Record<string, string> {
  const entries = argumentsAndEnvironment(pid)
    .environ.split("\0")
    .filter((entry) => entry.includes("="));
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
}
