import { relative, resolve } from "node:path";
import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";
import { importLocalModule } from "../local-installation.ts";

/** Exports of the local package for `controllers prepare`. */
interface LocalPreparation {
  prepareControllers(
    directory: string,
    options: PrepareFlags & { readonly addresses: readonly string[] },
    now: number,
  ): Promise<{ readonly joinFiles: readonly string[]; readonly shared: string; readonly history: string }>;
}

/** Exports of the local package for `controllers replace`. */
interface LocalReplacement {
  replaceController(options: {
    readonly directory: string;
    readonly address: string;
    readonly now: () => number;
    readonly signal: AbortSignal;
    note(text: string): void;
  }): Promise<string>;
}

interface PrepareFlags {
  readonly domain?: string;
  readonly history?: string;
  readonly objects?: string;
  readonly objectsKey?: string;
}

/** Commands for the hosts of an installation with several controllers. */
export function addControllers(noun: CliCommand): void {
  noun
    .command("prepare <directory> [address...]")
    .description(
      "write the join files of 3 or 5 hosts, each with a controller, a member of etcd and a DNS server; called again, it retains secrets and renews certificates",
    )
    .option("--domain <domain>", "domain of the names of services")
    .option("--history <host>", "address or name of the host of the history's PostgreSQL")
    .option("--objects <url>", "URL of the object store: s3://BUCKET/PREFIX?endpoint=https://HOST")
    .option("--objects-key <path>", "file with the credential of the object store: JSON with id and secret")
    .example(
      "controllers prepare prepared --domain svc.example.com --history 192.0.2.9 --objects 's3://backups/holdfast?endpoint=https://s3.example.com' --objects-key s3.json 192.0.2.1 192.0.2.2 192.0.2.3",
    )
    .example("controllers prepare prepared")
    .does(async ({ output, note }, directory: string, addresses: string[], flags: PrepareFlags) => {
      const local = await localModule<LocalPreparation>("controllers/prepared-directory.ts");
      const { domain, history, objects, objectsKey } = flags;
      const options = {
        addresses,
        ...(domain !== undefined && { domain }),
        ...(history !== undefined && { history }),
        ...(objects !== undefined && { objects }),
        ...(objectsKey !== undefined && { objectsKey: resolve(objectsKey) }),
      };
      const files = await usable(() => local.prepareControllers(resolve(directory), options, Date.now()));
      for (const path of files.joinFiles) output.info(asTyped(path));
      note(
        [
          "Copy each file to its host. On the host, as root: holdfast install controller --join FILE",
          `The certificate of the history's PostgreSQL is in ${asTyped(files.history)}.`,
          `Store a copy of ${asTyped(files.shared)} in a safe place: without it no backup can be decrypted.`,
        ].join("\n"),
      );
    });
  noun
    .command("replace <directory> <address>")
    .description(
      "replace a lost host by one with the same address: removes its member of etcd, adds a new one and writes its join file; runs where etcd of the other hosts can be connected to",
    )
    .option("--yes", "do not ask for confirmation")
    .example("controllers replace prepared 192.0.2.1")
    .does(async ({ signal, confirm, output, note }, directory: string, address: string, flags: { yes?: boolean }) => {
      const local = await localModule<LocalReplacement>("controllers/replace-controller.ts");
      // grpc-js uses etcd's IP address as TLS server name, and Node would warn about it.
      process.noDeprecation = true;
      await confirm(`Remove the member of etcd of ${address} with its data?`, flags.yes);
      const path = await usable(() =>
        local.replaceController({ directory: resolve(directory), address, now: Date.now, signal, note }),
      );
      output.info(asTyped(path));
      note(`Copy the file to the new host. There, as root: holdfast install controller --join FILE`);
    });
}

async function localModule<T>(file: string): Promise<T> {
  const local = await importLocalModule<T>(file);
  if (local === undefined)
    throw new UsageError("this installation of the command line has no platform: use a checkout");
  return local;
}

/** Result of the work. Its refusals, which name an argument, are those of the command line. */
async function usable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && error.name === "UserError") throw new UsageError(error.message);
    throw error;
  }
}

/** The path as the user would type it here. */
function asTyped(path: string): string {
  const below = relative("", path);
  return below.startsWith("..") ? path : below;
}
