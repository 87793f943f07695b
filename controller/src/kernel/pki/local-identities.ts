import { mkdir, rename, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { dirname, join } from "node:path";
import { type DataPlaneName, dataPlaneNames, dataPlanes } from "@holdfast/common/data-planes.ts";
import type { Identity } from "@holdfast/common/identity.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { contributionPoint } from "../contribution-point.ts";
import type { InstallationAuthority } from "./create-authority.ts";

/** Writes a file atomically, readable by its owner only. */
async function writePrivateFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, file);
}

/** Names and addresses by which clients reach a data plane, besides its fixed ones; its certificate contains them. */
export interface CertificateNames {
  /** Name of the data plane. */
  readonly dataPlane: string;
  readonly names: readonly string[];
}

export const certificateNames = contributionPoint<CertificateNames>("names in certificates", {
  key: ({ dataPlane }) => dataPlane,
});

export interface LocalIdentitiesDeps {
  readonly authority: InstallationAuthority;
  /** File of the trust bundle; empty: it is not written. */
  readonly caFile: string;
  /** Directory of each data plane's identity; empty: it is not written. */
  readonly directories: Readonly<Record<DataPlaneName, string>>;
  readonly certificateNames: readonly CertificateNames[];
  /** Called after each write, with the oldest generation of authorities in the files. */
  readonly onWritten: (generation: number) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** The files that one program reads. */
interface Files {
  /** Writes the current files; resolves to the generation of their authorities. */
  write(): Promise<number>;
  /** Calls back when the files have to be written again. */
  subscribe(onChange: () => void): { close(): void };
  close(): void;
}

/** Delay after a failed write, such as on a full disk. */
const retryDelayMs = 5_000;

/**
 * Writes trust and identities for programs on this machine: the authorities, and in local mode the identities of the
 * data planes on the controller's host. Files are written again whenever their content changes. Rejects if the first
 * write fails.
 */
export async function maintainLocalIdentities(deps: LocalIdentitiesDeps): Promise<{ close(): void }> {
  const { authority, caFile, directories, onWritten, log } = deps;
  const all: Files[] = [authoritiesFile(authority, caFile)];
  for (const kind of dataPlaneNames) {
    const directory = directories[kind];
    if (directory !== "") all.push(await identityFiles(deps, kind, directory));
  }
  let isClosed = false;
  let isOutdated = false;
  let writing: Promise<void> | undefined;
  let retryTimer: NodeJS.Timeout | undefined;

  async function write(): Promise<void> {
    const generations: number[] = [];
    for (const files of all) generations.push(await files.write());
    onWritten(Math.min(...generations));
  }

  async function writeAll(): Promise<void> {
    while (isOutdated && !isClosed) {
      isOutdated = false;
      await write();
    }
  }

  function requestWrite(): void {
    isOutdated = true;
    clearTimeout(retryTimer);
    writing ??= writeAll()
      .catch((error: unknown) => {
        log.error("identities not written", { error });
        if (!isClosed) retryTimer = setTimeout(requestWrite, retryDelayMs).unref();
      })
      .finally(() => {
        writing = undefined;
      });
  }

  const watches = all.map((files) => files.subscribe(requestWrite));
  await write();
  return {
    close() {
      isClosed = true;
      clearTimeout(retryTimer);
      for (const part of [...watches, ...all]) part.close();
    },
  };
}

function authoritiesFile(authority: InstallationAuthority, path: string): Files {
  return {
    async write() {
      const { generation, trustBundle } = authority;
      if (path !== "") await writePrivateFile(path, trustBundle);
      return generation;
    },
    subscribe: (onChange) => authority.subscribe(onChange),
    close() {},
  };
}

async function identityFiles(
  { authority, certificateNames: contributed, clock, log }: LocalIdentitiesDeps,
  kind: DataPlaneName,
  directory: string,
): Promise<Files> {
  const identity: Identity = { kind, id: `${kind}-1` };
  const extra = contributed.filter(({ dataPlane }) => dataPlane === kind).flatMap(({ names: all }) => all);
  const { addresses = [], names = [] } = Object.groupBy(extra, (each) => (isIP(each) === 0 ? "names" : "addresses"));
  const renewed = await createRenewedIdentity({
    authority,
    identity,
    names: [...new Set([...dataPlanes[kind].certificateNames, ...names])],
    addresses: [...new Set(["127.0.0.1", ...addresses])],
    clock,
    log,
  });
  return {
    async write() {
      const { privateKey, certificate, generation } = renewed.current;
      await writePrivateFile(join(directory, "ca.pem"), authority.trustBundle);
      await writePrivateFile(join(directory, "key.pem"), privateKey);
      // The certificate is written last, so that a reader that finds it finds all files.
      await writePrivateFile(join(directory, "cert.pem"), certificate);
      return generation;
    },
    subscribe: (onChange) => renewed.subscribe(onChange),
    close: () => renewed.close(),
  };
}
