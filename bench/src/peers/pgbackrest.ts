import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { inImage } from "@holdfast/image/in-image.ts";
import { ensureTree } from "@holdfast/image/build-tree.ts";
import { imagesDirectory, makeImageScript } from "@holdfast/image/node-image.ts";
import { type Cost, costOf } from "../support/cost.ts";

/** Location of the engine that it backs up. */
export interface PgBackRestOptions {
  readonly dataDirectory: string;
  readonly socketDirectory: string;
  readonly port: number;
  readonly uid: number;
  /** Empty directory of the engine's user, for repository, settings and logs. */
  readonly directory: string;
}

export type PgBackRest = Awaited<ReturnType<typeof createPgBackRest>>;

const packages = ["util-linux", "mount", "pgbackrest"];

/** pgBackRest with its fastest settings: zstd-1, bundles, blocks, AES-256, as the engine's user, into a directory. */
export async function createPgBackRest(options: PgBackRestOptions) {
  const { dataDirectory, socketDirectory, port, uid, directory } = options;
  const digest = createHash("sha256").update(packages.join() + readFileSync(makeImageScript, "utf8"));
  const root = join(imagesDirectory(process.env), `peers-trixie-${digest.digest("hex").slice(0, 16)}`);
  await ensureTree({ root, suite: "trixie", packages }, { progress: (line) => console.error(line) });
  for (const name of ["repo", "log", "lock", "spool"]) {
    mkdirSync(join(directory, name));
    chownSync(join(directory, name), uid, uid);
  }
  const config = join(directory, "pgbackrest.conf");
  writeFileSync(
    config,
    `[global]
repo1-path=${directory}/repo
repo1-cipher-type=aes-256-cbc
repo1-cipher-pass=a-pass-phrase-of-the-bench
repo1-bundle=y
repo1-block=y
repo1-retention-full=99
compress-type=zst
compress-level=1
archive-check=n
start-fast=y
log-path=${directory}/log
lock-path=${directory}/lock
spool-path=${directory}/spool
log-level-console=warn
log-level-file=off
[bench]
pg1-path=${dataDirectory}
pg1-socket-path=${socketDirectory}
pg1-port=${port}
pg1-user=holdfast
pg1-database=holdfast
`,
  );
  const launch = (...words: string[]) => {
    const argv = ["/usr/bin/pgbackrest", `--config=${config}`, "--stanza=bench", ...words];
    const binds = [directory, dataDirectory, socketDirectory];
    return inImage(root, { argv, uid, binds, asRoot: true });
  };
  const run = (...words: string[]): Promise<Cost> => costOf(launch(...words));
  await run("stanza-create");
  return {
    /** Size of the newest backup in the repository, without the parts of others. */
    async storedBytes(): Promise<number> {
      const { command, args } = launch("info", "--output=json");
      const { stdout } = await promisify(execFile)(command, [...args]);
      const [stanza] = JSON.parse(stdout) as [{ backup: { info: { repository: { delta: number } } }[] }];
      return stanza.backup.at(-1)?.info.repository.delta ?? Number.NaN;
    },
    backup: (type: "full" | "incr", processes: number) => run("backup", `--type=${type}`, `--process-max=${processes}`),
    restore: (into: string, processes: number) =>
      run("restore", `--pg1-path=${into}`, `--process-max=${processes}`, "--type=none"),
  };
}
