import { runProgram } from "@holdfast/common/run-program.ts";
import { detectGroups, type GroupAbility } from "./control-groups.ts";

/** Isolation of machines: namespaces as root, namespaces in a user namespace, or process groups only. */
export type Isolation = "root" | "user" | "none";

/** Features of this host that are available to the controller's user. */
export interface HostAbilities {
  readonly isolation: Isolation;
  /** True if each data disk is a loop device with a file system, so that its size is enforced. */
  readonly loop: boolean;
  /** Control groups for the CPU and memory limits of plans. */
  readonly groups: GroupAbility;
  /** Reason of isolation "none", with the command that helps. */
  readonly reason?: string;
  /**
   * True if the host's own engines cannot serve instead: they do not run as root, and machines get other users only by
   * namespaces.
   */
  readonly refusesHostEngines?: boolean;
}

/** Detects the abilities of this host by trying them, in about 20 ms. */
export async function detectAbilities(): Promise<HostAbilities> {
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? [] : ["--user", "--map-root-user"];
  try {
    await runProgram("unshare", [
      ...user,
      "--mount",
      "--pid",
      "--ipc",
      "--fork",
      "--kill-child",
      "mount",
      "-t",
      "tmpfs",
      "x",
      "/mnt",
    ]);
  } catch (error) {
    const text = error instanceof Error ? error.message.trim().split("\n").at(-1) : String(error);
    const reason = `this host allows no namespaces (${text}); ${remedy(isRoot)}`;
    return { isolation: "none", loop: false, groups: { version: "none", reason }, reason, refusesHostEngines: isRoot };
  }
  const groups = await detectGroups();
  return isRoot
    ? { isolation: "root", loop: await hasLoopDevices(), groups }
    : { isolation: "user", loop: false, groups };
}

async function hasLoopDevices(): Promise<boolean> {
  try {
    await runProgram("losetup", ["--find"]);
    return true;
  } catch {
    // A container without loop devices: data disks are directories, and agents meter them.
    return false;
  }
}

function remedy(isRoot: boolean): string {
  if (isRoot) return "run the container with the capability SYS_ADMIN, or start as a user who is not root";
  return (
    "as root, for all users: sysctl -w kernel.unprivileged_userns_clone=1 (Debian), " +
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)"
  );
}
