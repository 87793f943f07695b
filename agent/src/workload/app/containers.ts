import { rm } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { AppSpec, Release } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { containersName } from "../../../keeper/containment.ts";
import { segmentsOf } from "../../../keeper/segment-log.ts";
import type { ComponentStatus, KeeperClient } from "../../os/keeper-client.ts";
import { ProgramFailed, type RunProgram } from "../../os/program.ts";
import { slotAddress } from "./app-front.ts";
import { relayDirectory } from "./app-relay.ts";
import { containerConfig, type ImageProcess } from "./container-config.ts";
import { hostsFile, innerRelayConfig } from "./container-network.ts";
import { configMark, deleteOthersScript, packetFilter, runScript, unpackScript } from "./container-scripts.ts";
import { type SlotName, slotNames } from "./slots.ts";

/** The containers of a machine: the unpacked images of releases, and their runs as components of the keeper. */
export interface Containers {
  /** Pulls and unpacks the image of a release, unless that was done before; resolves with its configuration. */
  unpack(release: Release, signal: AbortSignal): Promise<ImageProcess>;
  /** Starts the release in its slot. It is ready later, or ends. */
  start(slot: SlotName, release: Release, image: ImageProcess, network: ContainerNetwork): Promise<void>;
  /** The run in a slot; undefined if there was none since the machine started. */
  status(slot: SlotName): ComponentStatus | undefined;
  isRunning(slot: SlotName): boolean;
  /** Subscribes to runs that end without a request. */
  onEnd(listener: (slot: SlotName) => void): { close(): void };
  /** Resolves once no process of the slot remains. */
  stop(slot: SlotName): Promise<void>;
  /** Deletes the files of all releases but these, and the logs of the deleted one. */
  deleteOthers(ids: readonly string[], deleted: string, signal: AbortSignal): Promise<void>;
}

/** The network of a container, besides the port of its release. */
export interface ContainerNetwork extends Pick<AppSpec, "endpoints" | "authorities"> {
  /** Address of the machine. */
  readonly address: string;
}

const stop = { signal: "SIGTERM", graceMs: 10_000 } as const;
const segmentBytes = 4 << 20;
const retainedSegments = 3;

export interface ContainersDeps {
  readonly keeper: KeeperClient;
  /** Runs programs as root of the containers' user namespace. */
  readonly run: RunProgram;
  readonly stateDir: string;
  readonly dataDir: string;
}

/** Path of the installation's authorities in a container, as in the variables that controllers compute. */
const machinesCaFile = "/etc/holdfast/ca.pem";

/** Base path of the log of a release. */
export function releaseLog(stateDir: string, releaseId: string): string {
  return join(stateDir, "log", `release-${releaseId}.log`);
}

/** Directory of the containers' files on the data disk. */
export function containersDirectory(dataDir: string): string {
  return join(dataDir, containersName);
}

export function createContainers({ keeper, run, stateDir, dataDir }: ContainersDeps): Containers {
  const directory = containersDirectory(dataDir);
  const nameOf = (slot: SlotName) => `release-${slot}`;
  const isRunning = (slot: SlotName) => (keeper.component(nameOf(slot))?.state ?? "empty") !== "empty";

  return {
    async unpack({ id, imageRef, registryAuthorities, registryUsername, registryPassword }, signal) {
      const [registry = ""] = imageRef.split("/", 1);
      const auth = Buffer.from(`${registryUsername}:${registryPassword}`).toString("base64");
      const input = JSON.stringify(registryUsername === "" ? {} : { auths: { [registry]: { auth } } });
      const argv = ["sh", "-c", unpackScript, "sh", directory, id, imageRef];
      try {
        const output = await run(argv, { input, env: { AUTHORITIES: registryAuthorities }, signal });
        return imageProcessOf(output.slice(output.lastIndexOf(configMark) + configMark.length));
      } catch (error) {
        if (!(error instanceof ProgramFailed)) throw error;
        throw new Error(`The image could not be pulled and unpacked: ${lastLineOf(error.output)}`, { cause: error });
      }
    },
    async start(slot, release, image, { address, endpoints, authorities }) {
      const target = slotAddress(address, slot);
      const config = containerConfig({
        image,
        command: release.command,
        env: release.environment.map(({ name, value }) => [name, value] as const),
        rootfs: join(directory, "releases", release.id, "rootfs"),
        networkNamespace: "/run/network",
        files: {
          "/etc/resolv.conf": "/run/resolv.conf",
          "/etc/hosts": "/run/hosts",
          ...(authorities !== "" && { [machinesCaFile]: "/run/ca.pem" }),
        },
      });
      await keeper.order({
        op: "start",
        component: {
          name: nameOf(slot),
          argv: ["sh", "-c", runScript, "sh", target.address, String(target.port), String(release.port)],
          env: {
            FILTER: packetFilter(machineAddresses()),
            HOSTS: hostsFile(endpoints),
            RELAY: innerRelayConfig(endpoints, relayDirectory(dataDir)),
            AUTHORITIES: authorities,
          },
          cwd: "/",
          input: JSON.stringify(config),
          log: {
            path: releaseLog(stateDir, release.id),
            maxBytes: segmentBytes,
            keep: retainedSegments,
            stamped: true,
          },
          role: "container",
          stop,
          deadlineMs: null,
        },
      });
    },
    status: (slot) => keeper.component(nameOf(slot)),
    isRunning,
    onEnd: (listener) =>
      keeper.subscribe(({ name, state, cause }) => {
        const slot = slotNames.find((each) => nameOf(each) === name);
        if (slot !== undefined && state === "empty" && cause !== "requested") listener(slot);
      }),
    async stop(slot) {
      if (isRunning(slot)) await keeper.order({ op: "stop", name: nameOf(slot), ...stop });
    },
    async deleteOthers(ids, deleted, signal) {
      await run(["sh", "-c", deleteOthersScript, "sh", directory, ...ids], { signal });
      const log = releaseLog(stateDir, deleted);
      for (const segment of segmentsOf(log)) await rm(`${log}.${segment}`, { force: true });
    },
  };
}

/** IPv4 addresses of the machine, which on a host without separate networks are those of the host. */
function machineAddresses(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each);
  return addresses.flatMap(({ family, address }) => (family === "IPv4" ? [address] : []));
}

/** The process of a runtime configuration that umoci wrote for an image. */
function imageProcessOf(text: string): ImageProcess {
  const { process } = JSON.parse(text) as { readonly process: Partial<ImageProcess> };
  const { args = [], env = [], cwd = "/", user = { uid: 0, gid: 0 } } = process;
  return { args, env, cwd, user };
}

const maxReasonLength = 500;

/** The line with the cause of a failed pull: skopeo and umoci print a line of fields, `msg="..."` among them. */
function lastLineOf(output: string): string {
  const line = output.trim().split("\n").at(-1) ?? "";
  const message = /msg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1]?.replaceAll('\\"', '"');
  return (message ?? line).slice(0, maxReasonLength);
}
