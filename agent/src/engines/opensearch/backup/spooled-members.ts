import { readEngineFile } from "../../../os/engine-file.ts";
import { memberFiles } from "../../spool-files/files-client.ts";
import { localFiles, type SpoolFiles } from "../../spool-files/spool-files.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { principalOf } from "../../member-certificates.ts";
import { membersOf } from "../../members.ts";
import { readCluster } from "../cluster-view.ts";
import { certificatesOf, ownNumber, portsOf, repositoryDirectory } from "../layout.ts";

/** A member with its part of the repository: the files of the shards that it has, and, at the leader, the lists. */
export interface SpooledMember {
  readonly number: number;
  readonly files: SpoolFiles;
  /** Bytes that the files may take on its disk. */
  readonly limitBytes: number;
}

/** The members that take part in the cluster now. Throws if one of them does not serve its files. */
export async function spooledMembers(
  { run }: Pick<EngineDeps, "run">,
  instance: Instance,
  limitBytes: number | undefined,
  signal: AbortSignal,
): Promise<SpooledMember[]> {
  const { nodes } = await readCluster(instance, signal);
  const { party, membersAuthority } = certificatesOf(instance);
  const [identity, authority] = await Promise.all([readEngineFile(party("agent")), readEngineFile(membersAuthority)]);
  const own = ownNumber(instance);
  const filesOf = (number: number): SpoolFiles => {
    if (number === own) return localFiles(run, repositoryDirectory(instance));
    const address = membersOf(instance.spec).find((each) => each.number === number)?.address ?? "";
    if (address === "") throw new Error(`the settings have no address of member ${number}`);
    const { files: port } = portsOf(instance);
    return memberFiles({ address, port, identity, authority, server: principalOf("server") });
  };
  return Promise.all(
    nodes.map(async ({ number }) => {
      const files = filesOf(number);
      return { number, files, limitBytes: limitBytes ?? (await files.limit(signal)) };
    }),
  );
}
