import { containerHostname } from "./container-network.ts";
import { seccompProfile } from "./seccomp.ts";

/** The parts of an image's configuration that decide how its program runs. */
export interface ImageProcess {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: { readonly uid: number; readonly gid: number; readonly additionalGids?: readonly number[] };
}

export interface ContainerOptions {
  readonly image: ImageProcess;
  /** Command in place of the image's; empty for the image's. */
  readonly command: readonly string[];
  readonly env: readonly (readonly [name: string, value: string])[];
  readonly rootfs: string;
  /** Path of the network namespace that the container joins. */
  readonly networkNamespace: string;
  /** Directory with the control groups that the container reads. */
  readonly controlGroups: string;
  /** Paths of files that the container only reads, by their paths inside. */
  readonly files: Readonly<Record<string, string>>;
}

/** Root inside a container changes owners and users of files in it, and listens on any port. */
const capabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_KILL",
  "CAP_NET_BIND_SERVICE",
  "CAP_SETGID",
  "CAP_SETPCAP",
  "CAP_SETUID",
  "CAP_SYS_CHROOT",
];
const restricted = ["nosuid", "noexec", "nodev"];
const openFiles = 20_000;

/**
 * Configuration of a container by the runtime specification of OCI (config.json). Its user namespace exists already and
 * is its alone; runc creates the others, except for the network namespace, in which pasta and the packet filter wait.
 * There is no control group for it: the limits are those of the machine, which the container reads, and the number of
 * processes is a limit of the user namespace.
 */
export function containerConfig(options: ContainerOptions): object {
  const { image, command, env, rootfs, networkNamespace, controlGroups, files } = options;
  const bind = (source: string, destination: string, ...options: string[]) => ({
    destination,
    type: "bind",
    source,
    options: ["bind", "nosuid", "noexec", ...options],
  });
  return {
    ociVersion: "1.1.0",
    hostname: containerHostname,
    root: { path: rootfs, readonly: false },
    process: {
      terminal: false,
      user: image.user,
      args: command.length > 0 ? command : image.args,
      env: mergedEnvironment(image.env, env),
      cwd: image.cwd === "" ? "/" : image.cwd,
      noNewPrivileges: true,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      rlimits: [
        { type: "RLIMIT_NOFILE", soft: openFiles, hard: openFiles },
        { type: "RLIMIT_CORE", soft: 0, hard: 0 },
      ],
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: restricted },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "noexec", "mode=755", "size=64k"] },
      {
        destination: "/dev/pts",
        type: "devpts",
        source: "devpts",
        options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
      },
      { destination: "/dev/shm", type: "tmpfs", source: "shm", options: [...restricted, "mode=1777", "size=64m"] },
      { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: restricted },
      {
        destination: "/sys/fs/cgroup",
        type: "bind",
        source: controlGroups,
        options: ["rbind", "ro", ...restricted],
      },
      ...Object.entries(files).map(([inside, source]) => bind(source, inside, "ro", "nodev")),
    ],
    linux: {
      namespaces: [
        { type: "pid" },
        { type: "ipc" },
        { type: "uts" },
        { type: "mount" },
        { type: "network", path: networkNamespace },
      ],
      seccomp: seccompProfile,
      maskedPaths: [
        "/proc/acpi",
        "/proc/asound",
        "/proc/interrupts",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/sys/firmware",
      ],
      readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    },
  };
}

/** The image's variables, each replaced by the app's variable of the same name. */
function mergedEnvironment(image: readonly string[], env: ContainerOptions["env"]): string[] {
  const merged = new Map(
    image.map((entry) => [entry.split("=", 1)[0] ?? "", entry.slice(entry.indexOf("=") + 1)] as const),
  );
  for (const [name, value] of env) merged.set(name, value);
  return [...merged].map(([name, value]) => `${name}=${value}`);
}
