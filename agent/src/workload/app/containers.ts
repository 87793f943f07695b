import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { AppSpec, Release } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { containersName } from "../../../keeper/containment.ts";
import type { ComponentStatus, KeeperClient } from "../../os/keeper-client.ts";
import type { ControlGroup } from "../../os/control-group.ts";
import { ProgramFailed, type RunProgram } from "../../os/program.ts";
import { slotAddress } from "./app-front.ts";
import { relayDirectory } from "./app-relay.ts";
import { containerConfig, type ImageProcess } from "./container-config.ts";
import { hostsFile, innerRelayConfig } from "./container-network.ts";
import {
  configMark,
  controlGroupsPath,
  deleteOthersScript,
  noCommandMark,
  packetFilter,
  refusedMark,
  runScript,
  unpackScript,
} from "./container-scripts.ts";
import { type ReleaseLogs, releaseLogSize } from "./release-logs.ts";
import { type SlotName, slotNames } from "./slots.ts";

/** The containers of a machine: the unpacked images of releases, and their runs as components of the keeper. */
export interface Containers {
  /**
   * Pulls and unpacks the image of a release, unless that was done before; resolves with its configuration. Throws
   * ImageRefused for an image that cannot run; other errors, such as those of the registry, may not occur again.
   */
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
  /** Deletes the files of all releases but these. Their logs remain within the limit of former releases. */
  deleteOthers(ids: readonly string[], signal: AbortSignal): Promise<void>;
}

/** The network of a container, besides the port of its release. */
export interface ContainerNetwork extends Pick<AppSpec, "endpoints" | "authorities"> {
  /** Address of the machine. */
  readonly address: string;
}

const stop = { signal: "SIGTERM", graceMs: 10_000 } as const;

export interface ContainersDeps {
  readonly keeper: KeeperClient;
  /** Runs programs as root of the containers' user namespace. */
  readonly run: RunProgram;
  readonly logs: Pick<ReleaseLogs, "path" | "prune">;
  /** The machine's own, whose limits are those of its containers. */
  readonly controlGroup: Pick<ControlGroup, "memoryLimitBytes">;
  readonly dataDir: string;
}

/** Path of the installation's authorities in a container, as in the variables that controllers compute. */
const machinesCaFile = "/etc/holdfast/ca.pem";

/** Directory of the containers' files on the data disk. */
export function containersDirectory(dataDir: string): string {
  return join(dataDir, containersName);
}

/** An image that no further attempt runs, with the reason for users. */
export class ImageRefused extends Error {
  override readonly name = "ImageRefused";
}

export function createContainers({ keeper, run, logs, controlGroup, dataDir }: ContainersDeps): Containers {
  const directory = containersDirectory(dataDir);
  const nameOf = (slot: SlotName) => `release-${slot}`;
  const isRunning = (slot: SlotName) => (keeper.component(nameOf(slot))?.state ?? "empty") !== "empty";

  /** Pulls and unpacks an image, and resolves with the output of the script. */
  async function unpack(release: Release, signal: AbortSignal): Promise<string> {
    const { id, imageRef, registryAuthorities, registryUsername, registryPassword } = release;
    const [registry = ""] = imageRef.split("/", 1);
    const auth = Buffer.from(`${registryUsername}:${registryPassword}`).toString("base64");
    const input = JSON.stringify(registryUsername === "" ? {} : { auths: { [registry]: { auth } } });
    const argv = ["sh", "-c", unpackScript, "sh", directory, id, imageRef];
    try {
      const output = await run(argv, { input, env: { AUTHORITIES: registryAuthorities }, signal });
      return output;
    } catch (error) {
      if (!(error instanceof ProgramFailed)) throw error;
      throw pullFailure(error);
    }
  }

  /** Configurations of unpacked images: a restart waits for no other program that unpacks one. */
  const unpacked = new Map<string, ImageProcess>();

  return {
    async unpack(release, signal) {
      const known = unpacked.get(release.id);
      if (known !== undefined) return known;
      const image = imageProcessOf(await unpack(release, signal));
      if (release.command.length === 0 && image.args.length === 0)
        throw new ImageRefused("The image has neither CMD nor ENTRYPOINT, and the app has no command.");
      unpacked.set(release.id, image);
      return image;
    },
    async start(slot, release, image, { address, endpoints, authorities }) {
      const target = slotAddress(address, slot);
      const config = containerConfig({
        image,
        command: release.command,
        env: release.environment.map(({ name, value }) => [name, value] as const),
        rootfs: join(directory, "releases", release.id, "rootfs"),
        networkNamespace: "/run/network",
        controlGroups: controlGroupsPath,
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
            LIMITS: Number.isFinite(await controlGroup.memoryLimitBytes()) ? "yes" : "",
          },
          cwd: "/",
          input: JSON.stringify(config),
          log: { path: logs.path(release.id), ...releaseLogSize, stamped: true, marksErrors: true },
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
    async deleteOthers(ids, signal) {
      await run(["sh", "-c", deleteOthersScript, "sh", directory, ...ids], { signal });
      logs.prune(ids);
    },
  };
}

/** IPv4 addresses of the machine, which on a host without separate networks are those of the host. */
function machineAddresses(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each);
  return addresses.flatMap(({ family, address }) => (family === "IPv4" ? [address] : []));
}

/** Architecture of this machine in the terms of images. */
const architecture = process.arch === "x64" ? "amd64" : process.arch;

/** The process of the runtime configuration that umoci wrote for an image, in the output of the script. */
function imageProcessOf(output: string): ImageProcess {
  const config = JSON.parse(output.slice(output.lastIndexOf(configMark) + configMark.length)) as {
    readonly process: Partial<ImageProcess>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  const built = config.annotations?.["org.opencontainers.image.architecture"] ?? "";
  if (built !== "" && built !== architecture)
    throw new ImageRefused(
      `The image is for the architecture ${built}, and the machines of apps have ${architecture}.`,
    );
  const { args = [], env = [], cwd = "/", user = { uid: 0, gid: 0 } } = config.process;
  return { args: output.includes(noCommandMark) ? [] : args, env, cwd, user };
}

const maxReasonLength = 500;

/** Errors of a pull that are those of the image, and not of the registry or of the network. */
const imageErrors =
  /no image found in (image index|manifest list)|unsupported|unrecognized|cannot unmarshal|error parsing|unexpected end of JSON/i;

/** The error of a failed pull, with its cause: skopeo and umoci print a line of fields, `msg="..."` among them. */
function pullFailure({ output }: ProgramFailed): Error {
  const isRefused = output.includes(refusedMark);
  const line = output.replace(refusedMark, "").trim().split("\n").at(-1) ?? "";
  const cause = /msg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1]?.replaceAll('\\"', '"') ?? line;
  const message = `The image could not be pulled and unpacked: ${cause.slice(0, maxReasonLength)}`;
  return isRefused || imageErrors.test(cause) ? new ImageRefused(message) : new Error(message);
}
