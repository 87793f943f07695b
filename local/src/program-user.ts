/** User of etcd and history. */
export interface ProgramUser {
  readonly uid: number;
  /** True if this process is root, and can switch users. */
  readonly asRoot: boolean;
}

/** Far from the host's users, and distinct for each installation, so that none can read another's files. */
const firstUid = 1_900_000_000;

export function programUser(loopbackBlock: string, asRoot: boolean): ProgramUser {
  return { uid: firstUid + Number(loopbackBlock.split(".")[1]), asRoot };
}
