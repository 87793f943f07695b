/** Who etcd and history run as. */
export interface ProgramUser {
  readonly uid: number;
  /** True when this process is root, and so can become another user. */
  readonly asRoot: boolean;
}

/** Far from the users of any host; one for each installation, so that none can read another's files. */
const firstUid = 1_900_000_000;

export function programUser(loopbackBlock: string, asRoot: boolean): ProgramUser {
  return { uid: firstUid + Number(loopbackBlock.split(".")[1]), asRoot };
}
